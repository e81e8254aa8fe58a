#include "injector/fault.h"

#include <poll.h>

namespace faultline::injector {
namespace {

// Long enough for queues in front of the observed place to drain, short against any fault that a
// scenario would call one.
constexpr Duration kEvidenceBudget = 500ms;
constexpr int kPauseMilliseconds = 1;

}  // namespace

Duration Fault::evidenceBudget() const { return kEvidenceBudget; }

Result<Evidence> Fault::evidence(const std::function<bool()>& stop) {
  if (!conclusive()) {
    const TimePoint deadline = now() + evidenceBudget();
    RETURN_IF_ERROR(demandEvidence());
    do {
      RETURN_IF_ERROR(step(now()));
      if (conclusive() || (stop && stop())) break;
      ::poll(nullptr, 0, kPauseMilliseconds);
    } while (now() < deadline);
  }
  return verdict();
}

}  // namespace faultline::injector
