#include "harness/cli/carry_out.h"

#include <poll.h>

#include "base/units.h"

namespace faultline::cli {
namespace {

constexpr int kStepMs = 1;

}  // namespace

Outcome carryOut(injector::Fault& fault, Duration duration, run::Interrupt& interrupt) {
  Outcome outcome;
  outcome.interrupted = interrupt.pending();
  if (outcome.interrupted) return outcome;  // nothing was changed
  const TimePoint begin = now();
  fault.lastsFor(duration);
  outcome.status = fault.apply();
  const TimePoint end = begin + duration;
  while (outcome.status.ok() && !outcome.interrupted && !fault.endedAt() && now() < end) {
    pollfd signal{interrupt.fd(), POLLIN, 0};
    ::poll(&signal, 1, kStepMs);
    outcome.interrupted = interrupt.pending();
    outcome.status = fault.step(now());
  }
  if (outcome.status.ok()) {
    const auto evidence = fault.evidence([&] { return interrupt.pending(); });
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
