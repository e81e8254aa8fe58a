#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/rate_meter.h"
#include "injector/netlink/link_target.h"
#include "injector/verbs/connection.h"
#include "injector/verbs/rule.h"

namespace faultline::injector {

/// Which programs are meant, asked when the fault is applied.
struct VerbsPrograms {
  std::function<Result<std::vector<pid_t>>()> find;
  /// There is exactly one, and it must be there: prepare() looks for it.
  bool known = false;
  std::string who{};  ///< which of the node's, for messages
};

/// One process.
VerbsPrograms program(pid_t pid);
/// Those processes of the NIC's namespace that have the shim and an RDMA device open.
VerbsPrograms programsOf(const netlink::LinkTarget& target);
/// The same of a network namespace, whose descriptor is borrowed.
VerbsPrograms programsIn(int namespace_fd, const std::vector<std::string>& started_with = {});

/// Faults of queue pairs, through the shim in the programs that own them (injector/verbs/shim).
/// Evidence: what the programs have run into, counted in them, or read back by them. Self-healing:
/// the shim disarms when this object, or its process, is gone.
class VerbsFault final : public Fault {
 public:
  VerbsFault(verbs::Effect effect, const FaultParameters& parameters, VerbsPrograms programs);
  ~VerbsFault() override;
  /// kUnavailable when a known program has no shim, kInvalidArgument for a value that makes none.
  Status prepare() override;
  void stopWhen(std::function<bool()> stop) override;
  /// kNotFound when no program has a queue pair that is meant.
  Status apply() override;
  /// kUnavailable when the fault has ended too early: this process was silent for longer than its
  /// lease. kDeadlineExceeded when a program does not answer (it was stopped): it is let go.
  Status step(TimePoint now) override;
  /// A program that does not answer is let go, which disarms it before anything else when it runs
  /// again.
  Status revert() override;
  std::string mechanism() const override;
  Duration evidenceBudget() const override;
  std::optional<TimePoint> endedAt() const override;
  /// The end of the first lease that ended unnoticed before revert().
  std::optional<TimePoint> lapsedAt() const override { return lapsed_; }

  /// Of all programs, as read last.
  const verbs::Counters& counters() const { return total_; }

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  struct Program {
    verbs::Connection connection;
    std::optional<std::uint64_t> fault{};  ///< while it is armed there
    verbs::Counters counters{};
    std::optional<RateMeter> meter{};  ///< of its completions, once the fault was armed there
    std::optional<TimePoint> asked{};  ///< for counters, when the answer has not come yet
    TimePoint renewed{};               ///< its lease
    std::optional<TimePoint> ended{};  ///< the program, while the fault was armed there
  };

  Status connect();
  Status arm();
  Status armIn(Program& program, const verbs::Rule& rule);
  /// One queue pair of all that the programs have together.
  Status armOne();
  void add(Program& program, const verbs::Counters& counters);
  /// Whether there was an answer.
  Result<bool> take(Program& program, Duration patience);

  verbs::Effect effect_;
  FaultParameters parameters_;
  VerbsPrograms where_;
  std::function<bool()> stop_;
  verbs::Rule rule_;
  std::vector<Program> programs_;
  verbs::Counters total_;
  TimePoint armed_{};
  TimePoint read_{};
  std::optional<TimePoint> lapsed_;
};

}  // namespace faultline::injector
