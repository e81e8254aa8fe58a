#include "harness/site/kinds/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/site/hosts/kind.h"
#include "harness/site/netns/kind.h"
#include "harness/site/rdma_vm/kind.h"

namespace faultline::site {
namespace {

// A new kind is one line here.
constexpr std::array kKinds{
    &netns::kKind,
    &rdma_vm::kKind,
    &hosts::kKind,
};

}  // namespace

std::span<const Kind* const> kinds() { return kKinds; }

const Kind* findKind(std::string_view name) {
  const auto found =
      std::ranges::find_if(kKinds, [&](const Kind* kind) { return kind->name == name; });
  return found == kKinds.end() ? nullptr : *found;
}

const Kind& firstKind(bool Kind::*property) {
  return **std::ranges::find_if(kKinds, [&](const Kind* kind) { return kind->*property; });
}

const Kind* firstKindWith(const injector::FaultKind& fault) {
  const auto found = std::ranges::find_if(
      kKinds, [&](const Kind* kind) { return kind->refusal(fault, {}).key != kRefusedKind; });
  return found == kKinds.end() ? nullptr : *found;
}

std::string clusterOf(const Kind& kind) { return fmt::format("cluster: {{kind: {}}}", kind.name); }

}  // namespace faultline::site
