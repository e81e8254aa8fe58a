#include "resilient_ccl/channel/degradation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace faultline::channel {

void Degradation::begin(Duration heard) {
  busy_ = first_ = true;
  since_ = heard;
  delivered_ = 0;
}

double Degradation::pace() const {
  return bytes_ > 0 ? static_cast<double>(granule_) * seconds_ / bytes_ : 0;
}

double Degradation::memory() const { return std::max(toSeconds(kMemory), kLeastMemory * pace()); }

double Degradation::rate(Duration heard) const {
  if (seconds_ < toSeconds(kLeastWork)) return 0;
  const double elapsed = busy_ && !first_ ? toSeconds(heard - since_) : 0;
  const double silent = std::max(0.0, elapsed - pace());
  const double kept = std::exp(-silent / memory());
  return bytes_ * kept / (seconds_ * kept + silent);
}

bool Degradation::change(double carried, double elapsed) {
  degraded_ = !degraded_;
  share_ = elapsed > 0 ? carried / elapsed : 1;
  sum_ = {};
  return true;
}

bool Degradation::observe(const Moment& moment) {
  if (!busy_) return false;
  granule_ = moment.granule;
  const Bytes bytes = std::exchange(delivered_, 0);
  const Duration delay = first_ ? kFirstDelay : Duration{};
  const double elapsed = toSeconds(std::max(Duration::zero(), moment.heard - since_ - delay));
  const bool known = moment.reference > 0;
  const double least = known ? static_cast<double>(moment.granule) / moment.reference : 0;
  const double proof = toSeconds(kProof) + least;

  if (bytes == 0 && !moment.idle) {
    // What is under way may be just about to be acknowledged: only what is beyond it is missing.
    const bool judged = known && moment.silenceProves && !degraded_ && elapsed > least;
    if (!judged || sum_.due + kShare * (elapsed - least) < proof) return false;
    since_ = moment.heard;
    first_ = false;
    return change(sum_.carried, sum_.elapsed + elapsed);
  }

  const bool says = !first_ || elapsed > 0;
  first_ = false;
  since_ = moment.heard;
  busy_ = !moment.idle;
  if (!says) return false;
  const double kept = std::exp(-elapsed / memory());
  bytes_ = bytes_ * kept + static_cast<double>(bytes);
  seconds_ = seconds_ * kept + elapsed;
  if (!known) return false;

  const double carried = static_cast<double>(bytes) / moment.reference;
  sum_.due += degraded_ ? carried - kHealedShare * elapsed : kShare * elapsed - carried;
  if (sum_.due <= 0) {
    sum_ = {};
    return false;
  }
  sum_.carried += carried;
  sum_.elapsed += elapsed;
  return sum_.due >= proof && change(sum_.carried, sum_.elapsed);
}

}  // namespace faultline::channel
