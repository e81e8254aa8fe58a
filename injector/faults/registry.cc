#include "injector/faults/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "injector/faults/fault_list.h"

namespace faultline::injector {
namespace {

#define FAULTLINE_ROW(kind) kind,
const std::vector<FaultKind>& allKinds() {
  static const std::vector<FaultKind> kinds{FAULTLINE_FAULTS(FAULTLINE_ROW)};
  return kinds;
}
#undef FAULTLINE_ROW

}  // namespace

std::span<const FaultKind> faultKinds() { return allKinds(); }

const FaultKind* findFaultKind(std::string_view name) {
  const auto found = std::ranges::find(allKinds(), name, &FaultKind::name);
  return found == allKinds().end() ? nullptr : &*found;
}

const FaultKind& firstFaultKind(bool FaultKind::*property) {
  return *std::ranges::find(allKinds(), true, property);
}

std::string faultsThatNeed(KernelMechanism mechanism) {
  std::vector<std::string> names;
  for (const FaultKind& kind : allKinds()) {
    if (kind.needs.mechanism != mechanism) continue;
    names.emplace_back(kind.name);
    if (!kind.needs.when.empty()) names.back() += fmt::format(" ({})", kind.needs.when);
  }
  std::string text = names.size() == 1 ? "the fault " : "the faults ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

bool isOfQueuePairs(std::string_view name) {
  const FaultKind* const kind = findFaultKind(name);
  return kind != nullptr && kind->ofQueuePairs;
}

bool isOfRdmaDevices(std::string_view name) {
  const FaultKind* const kind = findFaultKind(name);
  return kind != nullptr && kind->target == TargetKind::kRdma;
}

Result<std::unique_ptr<Fault>> makeFault(std::string_view kind, const FaultParameters& parameters,
                                         const netlink::LinkTarget& target) {
  const FaultKind* const found = findFaultKind(kind);
  if (found != nullptr && found->make != nullptr) return found->make(parameters, target);
  return errorf(Code::kNotFound, "there is no fault '{}'", kind);
}

Result<std::unique_ptr<Fault>> makeRdmaFault(std::string_view kind,
                                             const FaultParameters& parameters,
                                             const rdma::RdmaTarget& target) {
  const FaultKind* const found = findFaultKind(kind);
  if (found != nullptr && found->makeForDevice != nullptr) {
    return found->makeForDevice(parameters, target);
  }
  return errorf(Code::kNotFound, "there is no fault of RDMA devices '{}'", kind);
}

}  // namespace faultline::injector
