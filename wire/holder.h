#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/json_fields.h"
#include "wire/message.h"

/// Between the controller and what holds a fault on a node (harness/agent/fault_holder.h). The
/// agent of the node passes these messages on. Moments are those of the node's monotonic clock.
namespace faultline::wire {

/// A fault of a node. The first message.
struct HeldFault {
  static constexpr const char* kType = "fault";
  int version = kAgentVersion;
  std::string kind{};
  std::map<std::string, std::string> parameters{};  ///< as a scenario writes them
  std::string device{};                             ///< "rxe0"; of faults of RDMA devices
  /// Of faults of queue pairs and of processes: as netlink::LinkTarget::startedWith.
  std::vector<std::string> startedWith{};
  /// Of faults of an interface, which the node's fault service holds (service.h): its name. Empty:
  /// of others, which a child of the agent holds, and of which the rest says nothing.
  std::string interface {};
  Duration longest{};               ///< no strike is for longer
  std::vector<std::string> keep{};  ///< addresses that must stay within reach
  std::string run{};                ///< name of the run, for people
};

/// A call of injector::Fault.
enum class FaultCall { kPrepare, kApply, kEvidence, kRevert };

struct CallFault {
  static constexpr const char* kType = "call";
  FaultCall call = FaultCall::kPrepare;
};

using ToHolder = std::variant<HeldFault, CallFault>;

/// injector::Evidence
struct Evidence {
  std::string fault{};
  std::string kind{};
  std::string observed{};
  bool ok = false;
  std::map<std::string, std::int64_t> numbers{};
};

/// injector::Transition
struct FaultChange {
  bool broken = false;
  TimePoint before{};
  TimePoint after{};
  std::string peer{};
};

/// What comes back, once for each call.
struct HolderAnswer {
  static constexpr const char* kType = "answer";
  Outcome outcome{};
  std::string mechanism{};
  std::vector<FaultChange> changes{};  ///< since the answer before, oldest first
  std::optional<TimePoint> lapsed{};   ///< injector::Fault::lapsedAt()
  Evidence evidence{};                 ///< of kEvidence
};

/// What the fault does over time has failed.
struct HolderBroken {
  static constexpr const char* kType = "broken";
  Outcome outcome{};
};

using FromHolder = std::variant<HolderAnswer, HolderBroken, Gone>;

inline std::span<const EnumName<FaultCall>> namesOf(FaultCall /*which*/) {
  static constexpr EnumName<FaultCall> kNames[] = {{FaultCall::kPrepare, "prepare"},
                                                   {FaultCall::kApply, "apply"},
                                                   {FaultCall::kEvidence, "evidence"},
                                                   {FaultCall::kRevert, "revert"}};
  return kNames;
}

template <typename V>
void visitFields(V& v, Of<HeldFault> auto& fault) {
  v.required("version", fault.version);
  v.required("kind", fault.kind);
  v.required("parameters", fault.parameters);
  v.required("device", fault.device);
  v.required("started_with", fault.startedWith);
  v.required("interface", fault.interface);
  v.required("longest", fault.longest, kNotNegative);
  v.required("keep", fault.keep);
  v.required("run", fault.run);
}

template <typename V>
void visitFields(V& v, Of<CallFault> auto& message) {
  v.required("call", message.call);
}

template <typename V>
void visitFields(V& v, Of<Evidence> auto& evidence) {
  v.required("fault", evidence.fault);
  v.required("kind", evidence.kind);
  v.required("observed", evidence.observed);
  v.required("ok", evidence.ok);
  v.required("numbers", evidence.numbers);
}

template <typename V>
void visitFields(V& v, Of<FaultChange> auto& change) {
  v.required("broken", change.broken);
  v.required("before", change.before);
  v.required("after", change.after);
  v.required("peer", change.peer);
}

template <typename V>
void visitFields(V& v, Of<HolderAnswer> auto& answer) {
  v.required("outcome", answer.outcome);
  v.required("mechanism", answer.mechanism);
  v.required("changes", answer.changes);
  v.required("lapsed", answer.lapsed);
  v.required("evidence", answer.evidence);
}

template <typename V>
void visitFields(V& v, Of<HolderBroken> auto& message) {
  v.required("outcome", message.outcome);
}

/// Of an error.
Status checkFields(const HolderBroken& broken);

}  // namespace faultline::wire
