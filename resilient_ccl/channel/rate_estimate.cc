#include "resilient_ccl/channel/rate_estimate.h"

#include <cmath>

namespace faultline::channel {

void RateEstimate::begin(TimePoint now) {
  const double idle = toSeconds(now - since_);
  const double least = std::min(1.0, toSeconds(kLeastWeight) / seconds_);
  const double kept = std::max(std::exp(-idle / toSeconds(kMemory)), least);
  bytes_ *= kept;
  seconds_ *= kept;
  since_ = now;
}

void RateEstimate::acknowledged(Bytes bytes, TimePoint now) {
  const double elapsed = toSeconds(now - since_);
  const double kept = std::exp(-elapsed / toSeconds(kMemory));
  bytes_ = bytes_ * kept + static_cast<double>(bytes);
  seconds_ = seconds_ * kept + elapsed;
  since_ = measured_ = now;
}

double RateEstimate::withSilenceUntil(TimePoint until) const {
  if (until <= since_) return bytesPerSecond();
  RateEstimate silent = *this;
  silent.acknowledged(0, until);
  return silent.bytesPerSecond();
}

}  // namespace faultline::channel
