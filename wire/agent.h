#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/json_fields.h"
#include "base/units.h"
#include "wire/file_bytes.h"
#include "wire/guard.h"
#include "wire/holder.h"
#include "wire/message.h"
#include "wire/service.h"

/// Between the controller and the agent of a node (harness/agent/agent.h), which passes on what is
/// for guards and holders of faults. Moments are those of the node's monotonic clock.
namespace faultline::wire {

/// What an agent is told about its node. The first message.
struct AgentSetup {
  static constexpr const char* kType = "node";
  int version = kAgentVersion;
  /// File of the network namespace in which the node's programs run; the agent itself stays
  /// outside, so that what strikes the node's processes does not strike it. Empty: the agent's own.
  std::string networkNamespace{};
  /// Whoever holds this name on the network of the agent keeps others from it: a run of a host at a
  /// time. Empty: nobody is kept from anything.
  std::string lock{};
  /// Who holds it, in words for whoever finds it held.
  std::string holder{};
  /// The agent ends, with all that it has started, when it has heard nothing for so long; 0: never.
  Duration lease{};
};

/// How a file comes from a node to the controller.
enum class Bringing {
  kGrowing,  ///< what is appended, soon after it is
  kLines,    ///< each new line, at once, whether the file grows or is written anew for it
  kAtEnd,    ///< all of it, when the job is over
};
inline std::span<const EnumName<Bringing>> namesOf(Bringing /*which*/) {
  static constexpr EnumName<Bringing> kNames[] = {
      {Bringing::kGrowing, "growing"}, {Bringing::kLines, "lines"}, {Bringing::kAtEnd, "at_end"}};
  return kNames;
}

/// A file of a job that is to come to the controller.
struct BroughtFile {
  std::string path{};  ///< on the node
  Bringing how{};
};

/// Starts a guard. A program without an executable is looked for by its name, in PATH.
struct StartJob {
  static constexpr const char* kType = "job";
  int job = 0;        ///< its number from now on
  GuardJob guard{};   ///< its network namespace: empty, which is the node's
  bool read = false;  ///< what the programs print is to come back, when they are over
  bool logs = false;  ///< with the message comes the descriptor of the file that the guard logs to
  /// Absolute path of a folder that is made for the job, with those of what its programs print, and
  /// removed with all that is in it; empty: none.
  std::string folder{};
  std::vector<BroughtFile> files{};  ///< what comes in JobWrote
};

/// Could you start this, and are these files there?
struct CheckJob {
  static constexpr const char* kType = "check";
  GuardJob guard{};
  std::vector<std::string> files{};
};

/// Is this folder one that all nodes share? Who is `first` makes it, removes it when the agent
/// ends, and writes `token` into it. The others read the token, and try whether they may write.
struct ShareFolder {
  static constexpr const char* kType = "share";
  std::string folder{};  ///< absolute
  std::string token{};
  bool first = false;
};

/// Starts a rank of ours. Where the agent is on the controller's machine, two descriptors come with
/// the message: the rank's end of the channel over which it and the controller speak (rank.h), past
/// the agent, and that of the file that it logs to.
struct StartRank {
  static constexpr const char* kType = "rank";
  int job = 0;           ///< its number from now on
  bool relayed = false;  ///< no descriptors: the agent passes on what both say, and what it logs
  /// In addition to the agent's environment, or instead of what is there by that name.
  std::map<std::string, std::string> environment{};
};

/// To the guard of a job.
struct TellGuard {
  static constexpr const char* kType = "tell";
  int job = 0;
  ToGuard message{};
};

/// To a rank that is `relayed`.
struct TellRank {
  static constexpr const char* kType = "tell_rank";
  int job = 0;
  std::string message{};  ///< the text of its configuration, or of a ToRank
};

/// SIGKILL to a guard, with which all of its programs end, or to a rank.
struct EndJob {
  static constexpr const char* kType = "end";
  int job = 0;
};

/// What are your rails like?
struct AskRails {
  static constexpr const char* kType = "rails";
};

/// What does your monotonic clock say?
struct AskClock {
  static constexpr const char* kType = "clock";
};

/// What is your machine like?
struct AskFacts {
  static constexpr const char* kType = "facts";
};

/// Tell what these interfaces have carried, now and again and again.
struct WatchCounters {
  static constexpr const char* kType = "watch";
  std::vector<std::string> interfaces{};
  Duration every{};
};

/// Ask the fault service of your machine.
struct AskFaultService {
  static constexpr const char* kType = "ask_service";
  AskService question{};
  /// Addresses, behind its interfaces, which each get an empty datagram before: the service proves
  /// faults by what neighbours that are known do not answer.
  std::vector<std::string> peers{};
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

using ToAgent = std::variant<AgentSetup, CheckJob, StartJob, StartRank, TellGuard, TellRank, EndJob,
                             AskRails, AskClock, AskFacts, WatchCounters, ShareFolder,
                             AskFaultService, TellHolder, EndFault>;

/// It serves from now on.
struct AgentReady {
  static constexpr const char* kType = "ready";
};

/// The agent cannot do its work, and ends.
struct AgentError {
  static constexpr const char* kType = "error";
  std::string message{};
};

/// The first answer to StartJob and StartRank: it runs.
struct JobStarted {
  static constexpr const char* kType = "started";
  int job = 0;
};

/// Or it cannot be started.
struct JobRefused {
  static constexpr const char* kType = "refused";
  int job = 0;
  Outcome outcome{};
};

/// A rank has ended.
struct RankEnded {
  static constexpr const char* kType = "ended";
  int job = 0;
  std::string how{};  ///< "exit code 3", "killed by signal 9 (Killed)"
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

/// After the guard's last word, whatever that is: what was printed until then.
struct JobOutput {
  static constexpr const char* kType = "output";
  int job = 0;
  std::vector<Printed> programs{};
};

/// A file of a job has got more, or is there, with nothing in it yet. All that a file has comes
/// before what the guard says of it.
struct JobWrote {
  static constexpr const char* kType = "wrote";
  int job = 0;
  int file = 0;  ///< its place in StartJob::files
  FileBytes bytes{};
};

/// To CheckJob.
struct JobChecked {
  static constexpr const char* kType = "checked";
  std::vector<std::string> missing{};  ///< in words
};

/// To ShareFolder.
struct FolderShared {
  static constexpr const char* kType = "shared";
  Outcome outcome{};
};

/// What a node sees of one of its rails: what its own kernel says, in its words.
struct RailState {
  std::string link{};      ///< operstate of the network interface: "up", "down", "missing"
  bool carrier = false;    ///< false also of an interface that is switched off
  std::string rdma{};      ///< of the RDMA port: "4: ACTIVE", "1: DOWN", "missing"
  std::string physical{};  ///< likewise: "5: LinkUp", "2: Polling", "3: Disabled"
};

struct RailsTold {
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

/// A rank that is `relayed` has said something: FromRank, but for Gone.
struct RankSaid {
  static constexpr const char* kType = "rank_said";
  int job = 0;
  std::string message{};  ///< its text: who passes it on need not understand it
};

/// What such a rank has logged: some lines, or a part of one. Of one that logs without end it is
/// the beginning and the end.
struct Logged {
  static constexpr const char* kType = "logged";
  int job = 0;
  std::string text{};
};

/// An interface of a machine.
struct HostPort {
  std::string name{};
  std::string kind{};  ///< "veth", "bridge", ...; empty: physical, or the loopback
  std::string link{};  ///< link layer: "ether", "infiniband", "loopback", "other"
  std::vector<std::string> addresses{};  ///< IPv4, "10.1.0.3/24"
  bool up = false;
  bool carrier = false;
  int mtu = 0;
  BitsPerSecond speed = 0;  ///< 0: not told
  std::string pci{};        ///< "0000:3b:00.0"; empty: none
  std::string rdma{};       ///< its RDMA device, "mlx5_0"; empty: none
};

struct HostFacts {
  static constexpr const char* kType = "facts";
  std::string hostname{};
  std::string bootId{};
  std::string kernel{};
  int cores = 0;
  std::string defaultRoute{};  ///< interface of the IPv4 default route; empty: there is none
  std::string reachedAt{};     ///< its address to which ssh has come; empty: not by ssh
  Bytes agentMemory = 0;       ///< that the agent shares with nobody
  std::string temporary{};     ///< absolute path of the folder for what is soon over ($TMPDIR)
  std::vector<HostPort> ports{};
};

/// What an interface has carried since it exists.
struct PortCounters {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// Of WatchCounters, in that order; zeros: the interface is not there now.
struct CountersTold {
  static constexpr const char* kType = "counters";
  std::vector<PortCounters> ports{};
};

/// What it said, or why there is no answer.
struct FaultServiceTold {
  static constexpr const char* kType = "service";
  Outcome outcome{};
  ServiceFacts facts{};
};

using FromAgent =
    std::variant<AgentReady, AgentError, JobChecked, JobStarted, JobRefused, JobWrote, RankEnded,
                 RankSaid, Logged, GuardSaid, JobOutput, RailsTold, ClockTold, HostFacts,
                 CountersTold, FolderShared, FaultServiceTold, HolderSaid>;

// --- fields ---

template <typename V>
void visitFields(V& v, Of<AgentSetup> auto& setup) {
  v.required("version", setup.version);
  v.required("network_namespace", setup.networkNamespace);
  v.required("lock", setup.lock);
  v.required("holder", setup.holder);
  v.required("lease", setup.lease, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<BroughtFile> auto& file) {
  v.required("path", file.path);
  v.required("how", file.how);
}

template <typename V>
void visitFields(V& v, Of<StartJob> auto& message) {
  v.required("job", message.job);
  v.required("guard", message.guard);
  v.required("read", message.read);
  v.required("logs", message.logs);
  v.required("folder", message.folder);
  v.required("files", message.files);
}

template <typename V>
void visitFields(V& v, Of<CheckJob> auto& message) {
  v.required("guard", message.guard);
  v.required("files", message.files);
}

template <typename V>
void visitFields(V& v, Of<ShareFolder> auto& message) {
  v.required("folder", message.folder);
  v.required("token", message.token);
  v.required("first", message.first);
}

template <typename V>
void visitFields(V& v, Of<StartRank> auto& message) {
  v.required("job", message.job);
  v.required("relayed", message.relayed);
  v.required("environment", message.environment);
}

template <typename V>
void visitFields(V& v, Of<TellRank> auto& message) {
  v.required("job", message.job);
  v.required("message", message.message);
}

template <typename V>
void visitFields(V& v, Of<EndJob> auto& message) {
  v.required("job", message.job);
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
void visitFields(V& /*v*/, Of<AskFacts> auto& /*message*/) {}

template <typename V>
void visitFields(V& v, Of<WatchCounters> auto& message) {
  v.required("interfaces", message.interfaces);
  v.required("every", message.every, kNotNegative);
}

template <typename V>
void visitFields(V& v, Of<AskFaultService> auto& message) {
  v.required("question", message.question);
  v.required("peers", message.peers);
}

template <typename V>
void visitFields(V& v, Of<FaultServiceTold> auto& message) {
  v.required("outcome", message.outcome);
  v.required("facts", message.facts);
}

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
void visitFields(V& /*v*/, Of<AgentReady> auto& /*message*/) {}

template <typename V>
void visitFields(V& v, Of<AgentError> auto& message) {
  v.required("message", message.message);
}

template <typename V>
void visitFields(V& v, Of<JobStarted> auto& message) {
  v.required("job", message.job);
}

template <typename V>
void visitFields(V& v, Of<JobRefused> auto& message) {
  v.required("job", message.job);
  v.required("outcome", message.outcome);
}

/// Of an error.
Status checkFields(const JobRefused& refused);

template <typename V>
void visitFields(V& v, Of<JobWrote> auto& message) {
  v.required("job", message.job);
  v.required("file", message.file);
  v.required("bytes", message.bytes);
}

template <typename V>
void visitFields(V& v, Of<JobChecked> auto& message) {
  v.required("missing", message.missing);
}

template <typename V>
void visitFields(V& v, Of<FolderShared> auto& message) {
  v.required("outcome", message.outcome);
}

template <typename V>
void visitFields(V& v, Of<RankEnded> auto& message) {
  v.required("job", message.job);
  v.required("how", message.how);
}

template <typename V>
void visitFields(V& v, Of<RankSaid> auto& message) {
  v.required("job", message.job);
  v.required("message", message.message);
}

template <typename V>
void visitFields(V& v, Of<Logged> auto& message) {
  v.required("job", message.job);
  v.required("text", message.text);
}

template <typename V>
void visitFields(V& v, Of<HostPort> auto& port) {
  v.required("name", port.name);
  v.required("kind", port.kind);
  v.required("link", port.link);
  v.required("addresses", port.addresses);
  v.required("up", port.up);
  v.required("carrier", port.carrier);
  v.required("mtu", port.mtu, kNotNegative);
  v.required("speed", port.speed, kNotNegative);
  v.required("pci", port.pci);
  v.required("rdma", port.rdma);
}

template <typename V>
void visitFields(V& v, Of<HostFacts> auto& facts) {
  v.required("hostname", facts.hostname);
  v.required("boot_id", facts.bootId);
  v.required("kernel", facts.kernel);
  v.required("cores", facts.cores, kNotNegative);
  v.required("default_route", facts.defaultRoute);
  v.required("reached_at", facts.reachedAt);
  v.required("agent_memory", facts.agentMemory, kNotNegative);
  v.required("temporary", facts.temporary);
  v.required("ports", facts.ports);
}

template <typename V>
void visitFields(V& v, Of<PortCounters> auto& port) {
  v.required("sent", port.sent);
  v.required("received", port.received);
}

template <typename V>
void visitFields(V& v, Of<CountersTold> auto& message) {
  v.required("ports", message.ports);
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
void visitFields(V& v, Of<JobOutput> auto& message) {
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
void visitFields(V& v, Of<RailsTold> auto& message) {
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

}  // namespace faultline::wire
