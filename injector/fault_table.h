#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/parameter.h"
#include "base/status.h"

/// The one table of faults and their parameters. The scenario reader, its JSON Schema, `faultline
/// describe` and the documentation are all made from it, so that they cannot drift; the faults
/// themselves get their values only through it. No I/O and no netlink here.
///
/// What every fault has in common (`target`, `at` or `during`, `duration` or `until`, `times`)
/// belongs to the scenario, not to this table.
namespace faultline::injector {

using faultline::kSlowestRate;
using faultline::ParameterSpec;
using faultline::ParameterType;
using faultline::ParameterValue;
using faultline::Percent;
using faultline::Rate;

/// What a fault acts on.
enum class TargetKind {
  kLink,       ///< the link of one NIC
  kProcesses,  ///< the processes of a node
  kNone,       ///< the machine that the bench runs on, or nothing
};

/// One kind of fault.
struct FaultKind {
  std::string_view name;
  std::string_view summary;   ///< what it does, in one sentence
  std::string_view sees;      ///< what the job can notice of it
  std::string_view evidence;  ///< the independent observation that proves it
  std::string_view undo;      ///< how it is taken back, also when everything of ours is killed
  std::span<const ParameterSpec> parameters;
  bool cutsLink = false;  ///< nothing passes from its beginning to its end
  TargetKind target = TargetKind::kLink;
};

/// All faults, in the order in which they are listed.
std::span<const FaultKind> faultKinds();

/// nullptr when there is none of that name.
const FaultKind* findFaultKind(std::string_view name);

/// nullptr when the fault has no such parameter.
const ParameterSpec* findParameter(const FaultKind& kind, std::string_view name);

/// The values of one fault, complete: every parameter of its kind has one.
class FaultParameters : public Parameters {
 public:
  FaultParameters() = default;
  explicit FaultParameters(Parameters values) : Parameters(std::move(values)) {}

  /// Reads `texts` (name -> value as written) and fills in defaults. Unknown names, missing
  /// required ones and bad values are kInvalidArgument.
  static Result<FaultParameters> parse(const FaultKind& kind,
                                       const std::map<std::string, std::string>& texts);
};

/// The page of `faultline describe <fault>`: plain text of at most 100 columns.
std::string describeFault(const FaultKind& kind);

}  // namespace faultline::injector
