#include "harness/cli/inject_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "harness/cli/rdma_injection.h"
#include "injector/faults/registry.h"
#include "injector/faults/verbs_fault.h"
#include "injector/verbs/rule.h"

namespace faultline::cli {
namespace {

constexpr std::string_view kExample = "pid=1234,dev=mlx5_0,qpn=17";

/// Keys of a target that choose queue pairs, and the parameters that they are.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kQueuePairKeys{{
    {"dev", "device"},
    {"qpn", "qpn"},
    {"peer_qpn", "peer_qpn"},
    {"dlid", "dlid"},
    {"dgid", "dgid"},
}};

using Texts = std::map<std::string, std::string>;

namespace verbs = injector::verbs;

/// Makes the fault of a program's queue pairs.
Status addVerbsFault(verbs::Effect effect, Texts parameters, Injection& injection) {
  for (const auto& [key, value] : injection.target) {
    if (key == "pid") continue;
    const auto row = std::ranges::find(kQueuePairKeys, std::string_view(key),
                                       [](const auto& pair) { return pair.first; });
    if (row == kQueuePairKeys.end()) {
      std::vector<std::string_view> known{"pid"};
      for (const auto& [name, parameter] : kQueuePairKeys) known.push_back(name);
      return noSuchKey(injection.kind->name, key, known, kExample);
    }
    if (!parameters.emplace(row->second, value).second) {
      return errorf(Code::kInvalidArgument, "target: {} is given as a parameter as well", key);
    }
  }
  ASSIGN_OR_RETURN(const int pid, processOf(injection.target));
  ASSIGN_OR_RETURN(injection.parameters,
                   injector::FaultParameters::parse(*injection.kind, parameters));
  injection.fault =
      std::make_unique<injector::VerbsFault>(effect, injection.parameters, injector::program(pid));
  return okStatus();
}

}  // namespace

Result<Texts> parsePairs(const std::vector<std::string>& pairs, std::string_view what,
                         std::string_view example) {
  Texts texts;
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == pair.size()) {
      return errorf(Code::kInvalidArgument, "{}: '{}' is no name=value, like {}", what, pair,
                    example);
    }
    if (!texts.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second) {
      return errorf(Code::kInvalidArgument, "{}: '{}' is given twice", what,
                    pair.substr(0, equals));
    }
  }
  return texts;
}

Status noSuchKey(std::string_view kind, std::string_view key,
                 std::span<const std::string_view> known, std::string_view example) {
  const std::string meant = didYouMean(key, known);
  return errorf(Code::kInvalidArgument, "target: {} has no '{}'{}, like {}", kind, key,
                meant.empty() ? "; it has " + join(known, ", ") : meant, example);
}

Result<Texts> parseTarget(std::string_view text) {
  std::vector<std::string> pairs;
  while (true) {
    const std::size_t comma = text.find(',');
    pairs.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return parsePairs(pairs, "target", kExample);
}

Result<int> processOf(const Texts& target) {
  const auto found = target.find("pid");
  if (found == target.end()) {
    return errorf(Code::kInvalidArgument, "target: which process? Like {}", kExample);
  }
  const std::string& text = found->second;
  int pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc{} || end != text.data() + text.size() || pid <= 0) {
    return errorf(Code::kInvalidArgument, "target: '{}' is no process number", text);
  }
  return pid;
}

bool canInject(const injector::FaultKind& kind) {
  return kind.target == injector::TargetKind::kRdma || kind.makeOnHost != nullptr ||
         verbs::findEffect(kind.name).has_value();
}

std::string injectable() {
  std::vector<std::string_view> possible;
  for (const injector::FaultKind& row : injector::faultKinds()) {
    if (canInject(row)) possible.push_back(row.name);
  }
  return join(possible, ", ");
}

Status canInjectByHand(const std::string& kind) {
  const injector::FaultKind* const row = injector::findFaultKind(kind);
  if (row != nullptr && canInject(*row)) return okStatus();
  if (row != nullptr) {
    return errorf(
        Code::kInvalidArgument,
        "{} acts on what a scenario's cluster is made of, and not by hand; possible are {}", kind,
        injectable());
  }
  // Also those that a scenario has: what is meant must be known before why it is not possible.
  std::vector<std::string_view> known;
  for (const injector::FaultKind& each : injector::faultKinds()) known.push_back(each.name);
  const std::string meant = didYouMean(kind, known);
  return errorf(Code::kInvalidArgument, "there is no fault '{}'{}", kind,
                meant.empty() ? "; possible are " + injectable() : meant);
}

Result<Injection> makeInjection(const std::string& kind, std::string_view target,
                                const std::vector<std::string>& parameters) {
  RETURN_IF_ERROR(canInjectByHand(kind));
  Injection injection;
  injection.kind = injector::findFaultKind(kind);
  const auto effect = verbs::findEffect(kind);
  const bool rdma = injection.kind->target == injector::TargetKind::kRdma;
  ASSIGN_OR_RETURN(injection.target, parseTarget(target));
  ASSIGN_OR_RETURN(const Texts texts, parsePairs(parameters, "param", "budget=1"));
  RETURN_IF_ERROR(rdma ? addRdmaFault(texts, injection) : addVerbsFault(*effect, texts, injection));
  return injection;
}

}  // namespace faultline::cli
