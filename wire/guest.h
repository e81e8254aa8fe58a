#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/json_fields.h"
#include "wire/guard.h"
#include "wire/message.h"

/// Of a laboratory of guests: between the controller and the agent of a guest
/// (harness/agent/agent.h), what holds a fault on its node (fault_holder.h), and the
/// machine room (machine_room.h).
namespace faultline::wire {

// --- what holds a fault ---

/// A fault inside of a guest. The first message.
struct HeldFault {
  static constexpr const char* kType = "fault";
  int version = kVersion;
  std::string kind{};
  std::map<std::string, std::string> parameters{};  ///< as a scenario writes them
  std::string device{};                             ///< "rxe0"; not of faults of queue pairs
  /// Of faults of queue pairs: as netlink::LinkTarget::startedWith.
  std::string startedWith{};
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

/// What comes back, once for each call.
struct HolderAnswer {
  static constexpr const char* kType = "answer";
  Outcome outcome{};
  std::string mechanism{};
  std::uint64_t changes = 0;         ///< injector::Fault::transitions() so far
  Duration since{};                  ///< from the end of the latest of them to this answer
  std::optional<Duration> lapsed{};  ///< the same from injector::Fault::lapsedAt()
  Evidence evidence{};               ///< of kEvidence
};

/// What the fault does over time has failed.
struct HolderBroken {
  static constexpr const char* kType = "broken";
  Outcome outcome{};
};

using FromHolder = std::variant<HolderAnswer, HolderBroken, Gone>;

// --- the agent of a guest ---

/// What a guest is told about itself. The first message.
struct GuestSetup {
  static constexpr const char* kType = "setup";
  int version = kVersion;
  int host = 0;
  int nics = 0;
  std::uint32_t mtu = 0;  ///< of the rails
};

/// Starts a guard.
struct StartJob {
  static constexpr const char* kType = "job";
  int job = 0;  ///< its number from now on
  GuardJob guard{};
  bool read = false;  ///< what the programs print is to come back
};

/// To the guard of a job.
struct TellGuard {
  static constexpr const char* kType = "tell";
  int job = 0;
  ToGuard message{};
};

/// What are your rails like?
struct AskRails {
  static constexpr const char* kType = "rails";
};

/// What does your monotonic clock say?
struct AskClock {
  static constexpr const char* kType = "clock";
};

/// To the holder of a fault, which the first one starts.
struct TellHolder {
  static constexpr const char* kType = "fault";
  int fault = 0;
  ToHolder message{};
};

/// Ends a holder.
struct EndFault {
  static constexpr const char* kType = "end_fault";
  int fault = 0;
};

using ToGuest =
    std::variant<GuestSetup, StartJob, TellGuard, AskRails, AskClock, TellHolder, EndFault>;

/// All that the setup asks for is done.
struct GuestReady {
  static constexpr const char* kType = "ready";
  std::string kernel{};  ///< "6.1.0-56-amd64"
};

/// The agent cannot do its work, and switches the guest off.
struct GuestError {
  static constexpr const char* kType = "error";
  std::string message{};
};

struct GuardSaid {
  static constexpr const char* kType = "guard";
  int job = 0;
  FromGuard message{};
};

/// What a program has printed; what is not UTF-8 is replaced.
struct Printed {
  std::string out{};
  std::string err{};
};

/// After the guard's last word.
struct GuestOutput {
  static constexpr const char* kType = "output";
  int job = 0;
  std::vector<Printed> programs{};
};

/// What a guest sees of one of its rails: what its own kernel says, in its words.
struct RailState {
  std::string link{};      ///< operstate of the network interface: "up", "down", "missing"
  bool carrier = false;    ///< false also of an interface that is switched off
  std::string rdma{};      ///< of the RDMA port: "4: ACTIVE", "1: DOWN", "missing"
  std::string physical{};  ///< likewise: "5: LinkUp", "2: Polling", "3: Disabled"
};

struct GuestRails {
  static constexpr const char* kType = "rails";
  std::vector<RailState> rails{};
};

/// The answer, at once.
struct ClockTold {
  static constexpr const char* kType = "clock";
  TimePoint at{};
};

struct HolderSaid {
  static constexpr const char* kType = "fault";
  int fault = 0;
  FromHolder message{};
};

using FromGuest =
    std::variant<GuestReady, GuestError, GuardSaid, GuestOutput, GuestRails, ClockTold, HolderSaid>;

// --- the machine room ---

/// What to start. The first message.
struct RoomJob {
  static constexpr const char* kType = "job";
  int version = kVersion;
  int nics = 0;                                    ///< of each guest
  std::string executable{};                        ///< qemu
  std::vector<std::vector<std::string>> guests{};  ///< its arguments, by host
};

using ToRoom = std::variant<RoomJob>;

/// All guests run.
struct RoomStarted {
  static constexpr const char* kType = "started";
};

/// A guest has ended.
struct GuestGone {
  static constexpr const char* kType = "gone";
  int host = 0;
  std::string message{};
};

/// The room cannot do its work, and ends.
struct RoomError {
  static constexpr const char* kType = "error";
  std::string message{};
};

using FromRoom = std::variant<RoomStarted, GuestGone, RoomError>;

// --- fields ---

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
void visitFields(V& v, Of<HolderAnswer> auto& answer) {
  v.required("outcome", answer.outcome);
  v.required("mechanism", answer.mechanism);
  v.required("changes", answer.changes);
  v.required("since", answer.since);
  v.required("lapsed", answer.lapsed);
  v.required("evidence", answer.evidence);
}

template <typename V>
void visitFields(V& v, Of<HolderBroken> auto& message) {
  v.required("outcome", message.outcome);
}

/// Of an error.
Status checkFields(const HolderBroken& broken);

template <typename V>
void visitFields(V& v, Of<GuestSetup> auto& setup) {
  v.required("version", setup.version);
  v.required("host", setup.host);
  v.required("nics", setup.nics);
  v.required("mtu", setup.mtu);
}

template <typename V>
void visitFields(V& v, Of<StartJob> auto& message) {
  v.required("job", message.job);
  v.required("guard", message.guard);
  v.required("read", message.read);
}

template <typename V>
void visitFields(V& v, Of<TellGuard> auto& message) {
  v.required("job", message.job);
  v.required("message", message.message);
}

template <typename V>
void visitFields(V& /*v*/, Of<AskRails> auto& /*message*/) {}

template <typename V>
void visitFields(V& /*v*/, Of<AskClock> auto& /*message*/) {}

template <typename V>
void visitFields(V& v, Of<TellHolder> auto& message) {
  v.required("fault", message.fault);
  v.required("message", message.message);
}

template <typename V>
void visitFields(V& v, Of<EndFault> auto& message) {
  v.required("fault", message.fault);
}

template <typename V>
void visitFields(V& v, Of<GuestReady> auto& message) {
  v.required("kernel", message.kernel);
}

template <typename V>
void visitFields(V& v, Of<GuestError> auto& message) {
  v.required("message", message.message);
}

template <typename V>
void visitFields(V& v, Of<GuardSaid> auto& message) {
  v.required("job", message.job);
  v.required("message", message.message);
}

template <typename V>
void visitFields(V& v, Of<Printed> auto& printed) {
  v.required("out", printed.out);
  v.required("err", printed.err);
}

template <typename V>
void visitFields(V& v, Of<GuestOutput> auto& message) {
  v.required("job", message.job);
  v.required("programs", message.programs);
}

template <typename V>
void visitFields(V& v, Of<RailState> auto& rail) {
  v.required("link", rail.link);
  v.required("carrier", rail.carrier);
  v.required("rdma", rail.rdma);
  v.required("physical", rail.physical);
}

template <typename V>
void visitFields(V& v, Of<GuestRails> auto& message) {
  v.required("rails", message.rails);
}

template <typename V>
void visitFields(V& v, Of<ClockTold> auto& message) {
  v.required("at", message.at);
}

template <typename V>
void visitFields(V& v, Of<HolderSaid> auto& message) {
  v.required("fault", message.fault);
  v.required("message", message.message);
}

template <typename V>
void visitFields(V& v, Of<RoomJob> auto& job) {
  v.required("version", job.version);
  v.required("nics", job.nics);
  v.required("executable", job.executable);
  v.required("guests", job.guests);
}

template <typename V>
void visitFields(V& /*v*/, Of<RoomStarted> auto& /*message*/) {}

template <typename V>
void visitFields(V& v, Of<GuestGone> auto& message) {
  v.required("host", message.host);
  v.required("message", message.message);
}

template <typename V>
void visitFields(V& v, Of<RoomError> auto& message) {
  v.required("message", message.message);
}

}  // namespace faultline::wire
