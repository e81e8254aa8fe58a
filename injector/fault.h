#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace faultline::injector {

/// Between two looks at what should become true soon.
constexpr int kLookAgainMs = 1;

/// An independent observation that a fault really happened (or did not). "No evidence, no result":
/// a run with a fault whose evidence is not ok is INVALID.
struct Evidence {
  std::string fault;     ///< the kind of fault, e.g. "port_down"
  std::string kind;      ///< what was observed, e.g. "carrier of the other end"
  std::string observed;  ///< for people, with numbers
  bool ok = false;
  /// For programs: what was counted, by name; of faults of queue pairs, all that their shim counts.
  std::map<std::string, std::int64_t> numbers{};
};

/// One change that a fault made, with the monotonic clock read before and after the kernel calls:
/// the true moment lies between.
struct Transition {
  bool broken = false;  ///< true: damaged by it; false: whole again
  TimePoint before;
  TimePoint after;
  std::string peer{};  ///< address of the only other end that it concerns; empty: all of the link
};

/// A fault on one target. The order of calls is prepare, apply, (step)*, evidence, revert; apply
/// and what follows may be repeated, each time with evidence of its own. Not thread-safe. The
/// injector knows nothing of jobs: what is under test cannot tell that it is being tested, and a
/// fault cannot tell what runs over its target.
///
/// Destroying a fault that has sent probes takes some 10 ms per socket of theirs: do that after the
/// measured time. Repeating it reuses them.
///
/// Faults revert in their destructor, and what they act on dies with its namespace, so that nothing
/// stays damaged, however the program ends.
class Fault {
 public:
  virtual ~Fault() = default;
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;

  /// Checks that the fault can work here, and notes the state to go back to. Changes nothing. May
  /// take some 100 ms: call it before the measured time. kUnavailable when the target is damaged
  /// already, kUnsupported when the mechanism is missing.
  virtual Status prepare() = 0;

  /// Who waits for prepare() or apply() asks, about every 10 ms, whether to go on: where these take
  /// long (`external`), they end with kAborted when nobody waits any more. To be called first.
  virtual void stopWhen(std::function<bool()> /*stop*/) {}

  /// No apply() is for longer than this. To be called before prepare(): who takes a fault back
  /// whatever dies must know when that is due at the latest.
  virtual void noLongerThan(Duration /*longest*/) {}

  /// The next apply() is for so long; nullopt: until the end of the run. To be called before it: a
  /// fault that repeats something within its time must know how often that is.
  virtual void lastsFor(std::optional<Duration> /*duration*/) {}

  /// Does it, and forgets what was observed before. Short: only the kernel calls.
  virtual Status apply() = 0;

  /// To be called about every millisecond from apply() to revert(): does what is due by `now` (a
  /// flapping port) and observes. Some tens of microseconds.
  virtual Status step(TimePoint now) = 0;

  /// What has been observed so far. When that is not conclusive yet, goes on observing, with probes
  /// of its own when the job gives no load, for at most evidenceBudget(): to be called once before
  /// revert(). Judges what it sees and not what was called: it is not ok when apply() was forgotten
  /// or had no effect. It is asked between two looks whether to `stop` (nobody waits any more), and
  /// then judges what it has.
  Result<Evidence> evidence(const std::function<bool()>& stop = {});

  /// Takes it back and checks that the former state is there again. Idempotent; without apply() it
  /// does nothing.
  virtual Status revert() = 0;

  /// How it is done here, e.g. "netlink: the NIC is set down".
  virtual std::string mechanism() const = 0;

  /// When, before revert(), nothing was left that it could strike, as what it struck has ended; to
  /// wait longer is of no use. Nothing: it goes on, or was not applied.
  virtual std::optional<TimePoint> endedAt() const { return std::nullopt; }

  /// After revert(): when, about and not earlier, it had ended by itself before, since whoever kept
  /// it up was not there to do so (it was stopped). What is evidence happened before that. Nothing:
  /// it was there until revert().
  virtual std::optional<TimePoint> lapsedAt() const { return std::nullopt; }

  /// Every change made so far, oldest first. The first after apply() is the moment of the fault.
  const std::vector<Transition>& transitions() const { return transitions_; }

  /// The longest that evidence() takes.
  virtual Duration evidenceBudget() const;

 protected:
  Fault() = default;

  /// Whether more observing cannot change the verdict.
  virtual bool conclusive() const = 0;
  virtual Evidence verdict() const = 0;
  /// From now on the evidence is waited for: probes of our own are in order.
  virtual Status demandEvidence() { return okStatus(); }

  /// Runs `change` and records it as a transition, of what leads to `peer`, if it succeeds.
  template <typename Change>
  Status transit(bool broken, Change change, std::string peer = "") {
    const TimePoint before = now();
    const Status status = change();
    if (status.ok()) record({broken, before, now(), std::move(peer)});
    return status;
  }
  /// A change that was made elsewhere, and is known from there.
  void record(Transition transition) { transitions_.push_back(std::move(transition)); }

 private:
  std::vector<Transition> transitions_;
};

}  // namespace faultline::injector
