#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"

/// What `faultline inject --target` can name, and how a fault is made for it.
namespace faultline::cli {

/// "pid=17,dev=mlx5_0" -> {pid: 17, dev: mlx5_0}. kInvalidArgument for what is no list of such.
Result<std::map<std::string, std::string>> parseTarget(std::string_view text);

/// The same of words, "budget=1" each; `what` and `example` are for the message.
Result<std::map<std::string, std::string>> parsePairs(const std::vector<std::string>& pairs,
                                                      std::string_view what,
                                                      std::string_view example);

/// kInvalidArgument for a key that targets of this kind do not have.
Status noSuchKey(std::string_view kind, std::string_view key,
                 std::span<const std::string_view> known, std::string_view example);

/// One fault, ready to be prepared, and how it is described.
struct Injection {
  const injector::FaultKind* kind = nullptr;
  std::map<std::string, std::string> target;
  injector::FaultParameters parameters;
  std::unique_ptr<injector::Fault> fault;
};

/// Makes it. `parameters`: "name=value" each. kInvalidArgument or kNotFound for what there is not.
Result<Injection> makeInjection(const std::string& kind, std::string_view target,
                                const std::vector<std::string>& parameters);

/// The process of a target. kInvalidArgument when it has none.
Result<int> processOf(const std::map<std::string, std::string>& target);

/// Whether `inject` knows this kind.
bool canInject(const injector::FaultKind& kind);

/// The same of a name; the error says why not, and what is possible.
Status canInjectByHand(const std::string& kind);

/// "qp_error, post_error, ...": the kinds that it knows.
std::string injectable();

}  // namespace faultline::cli
