#include "harness/cli/carry_out.h"

#include <poll.h>

#include <cstddef>

#include "base/give_up.h"
#include "base/units.h"

namespace faultline::cli {
namespace {

constexpr int kStepMs = 1;

/// The fault may outlive the interrupt, and asks it no more from then on.
class ForgetInterrupt {
 public:
  explicit ForgetInterrupt(injector::Fault& fault) : fault_(fault) {}
  ~ForgetInterrupt() { fault_.stopWhen({}); }
  ForgetInterrupt(const ForgetInterrupt&) = delete;
  ForgetInterrupt& operator=(const ForgetInterrupt&) = delete;

 private:
  injector::Fault& fault_;
};

}  // namespace

Outcome carryOut(injector::Fault& fault, Duration duration, run::Interrupt& interrupt,
                 const std::function<void()>& prepared) {
  Outcome outcome;
  const GiveUp giveUp = [&interrupt] { return interrupt.pending(); };
  fault.stopWhen(giveUp);
  const ForgetInterrupt forget(fault);
  outcome.status = fault.prepare();
  outcome.interrupted = interrupt.pending();
  if (outcome.interrupted && outcome.status.code() == Code::kAborted) outcome.status = okStatus();
  if (outcome.interrupted || !outcome.status.ok()) return outcome;  // nothing was changed
  if (prepared) prepared();
  TimePoint begin = now();
  const std::size_t changes = fault.transitions().size();
  fault.lastsFor(duration);
  outcome.status = fault.apply();
  // What comes before the first change (an announcement) is not of its time.
  if (fault.transitions().size() > changes) begin = fault.transitions()[changes].before;
  const bool stopped = outcome.status.code() == Code::kAborted && interrupt.pending();
  if (stopped) {  // it is half done
    outcome.status = okStatus();
    outcome.interrupted = true;
  }
  const TimePoint end = begin + duration;
  while (outcome.status.ok() && !outcome.interrupted && !fault.endedAt() && now() < end) {
    pollfd signal{interrupt.fd(), POLLIN, 0};
    ::poll(&signal, 1, kStepMs);
    outcome.interrupted = interrupt.pending();
    outcome.status = fault.step(now());
  }
  if (outcome.status.ok() && !stopped) {
    const auto evidence = fault.evidence(giveUp);
    if (evidence.ok()) outcome.evidence = *evidence;
    // Who interrupts it has not asked for evidence: what is there by then is told.
    if (!outcome.interrupted) outcome.status = evidence.status();
    outcome.interrupted |= !outcome.evidence.ok && interrupt.pending();
  }
  outcome.ended = fault.endedAt();
  outcome.reverted = fault.revert();
  const std::optional<TimePoint> lapsed = fault.lapsedAt();
  outcome.lasted = lapsed.value_or(outcome.ended.value_or(now())) - begin;
  if (lapsed && *lapsed < end && !outcome.interrupted && outcome.status.ok()) {
    outcome.status = errorf(Code::kUnavailable,
                            "it ended by itself after about {:.0f} ms of the {} that it was to "
                            "last: this process was stopped, or the machine is too busy",
                            toMilliseconds(outcome.lasted), formatDuration(duration));
  }
  return outcome;
}

}  // namespace faultline::cli
