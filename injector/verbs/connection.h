#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/give_up.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/verbs/rule.h"
#include "injector/verbs/wire.h"

namespace faultline::injector::verbs {

/// How to get the shim into a program, for messages.
inline constexpr const char* kHowToLoad =
    "start it with LD_PRELOAD=<folder>/libfaultline-verbs.so, or, what loads libibverbs itself, "
    "with "
    "NCCL_IBVERBS_LIB (NCCL 2.30 on) or MSCCLPP_IBV_SO (MSCCL++) set to it";

/// The controller's end of the socket of one process's shim. Faults that are armed over it end with
/// it. Calls wait at most kPatience for the answer, and are kDeadlineExceeded after that.
class Connection {
 public:
  static constexpr Duration kPatience = 5s;
  /// The same of what must not be left out, when nobody waits any more.
  static constexpr Duration kLastPatience = 500ms;

  /// kNotFound: there is no such process. kUnavailable: it has no shim, or has not opened an RDMA
  /// device (since fork()); the message says which and what to do. kPermissionDenied: it is
  /// somebody else's, or may not be looked into (whyRefused()).
  static Result<Connection> open(pid_t pid);

  /// Asked while an answer is waited for: kAborted. disarm() waits for kLastPatience then.
  void giveUpWhen(GiveUp giveUp) { giveUp_ = std::move(giveUp); }

  Result<ShimFacts> hello();
  /// kIo when it does not come to an end.
  Result<std::vector<QueuePairFacts>> list();
  /// Its number. kNotFound: no queue pair is meant.
  Result<std::uint64_t> arm(const Rule& rule);
  /// Renews the leases of all faults of this connection. kNotFound when the fault's lease has
  /// ended, kUnavailable when the process has.
  Result<Counters> counters(std::uint64_t fault);
  /// counters() in two halves, for those who cannot wait: the answer is to be taken before it is
  /// asked for again, and is thrown away by any other call.
  Status askCounters(std::uint64_t fault);
  /// Nothing while it has not come within `patience`.
  Result<std::optional<Counters>> takeCounters(Duration patience);
  /// kNotFound when its lease has ended.
  Result<Counters> disarm(std::uint64_t fault);
  /// What a program has said of the fault when it ended by exit(), once a call has found it gone.
  std::optional<Counters> last(std::uint64_t fault) const;

  pid_t pid() const { return pid_; }
  /// What it has armed ends with this, at the latest when the program runs again if it is stopped.
  /// No other call is possible after it.
  void close() { fd_.reset(); }

 private:
  Connection(pid_t pid, UniqueFd fd) : pid_(pid), fd_(std::move(fd)) {}
  /// `matters`: it is waited for a little also when nobody waits any more.
  Result<Message> ask(const Message& request, bool matters = false);
  /// As receive(), and asks whether anybody waits.
  Result<std::optional<Message>> await(std::string_view verb, Duration patience, bool matters);
  Status send(const Message& request);
  Result<std::optional<Message>> receive(std::string_view verb, Duration patience);
  /// One message that is there; nothing when it was a last word.
  Result<std::optional<Message>> read(std::string_view verb);
  std::string attempt(std::string_view verb) const;
  Status silent(std::string_view verb, Duration patience) const;

  pid_t pid_;
  UniqueFd fd_;
  bool awaitsCounters_ = false;
  std::map<std::uint64_t, Counters> last_;  // by fault
  GiveUp giveUp_;
};

}  // namespace faultline::injector::verbs
