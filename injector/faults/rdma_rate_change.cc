#include "injector/faults/rdma_rate_change.h"

namespace faultline::injector {
namespace {

// Firmware keeps counters and limits in its own time; this is long against that.
constexpr Duration kChangeWindow = 1s;
// A limit is not exact; but what was hardly faster before proves nothing.
constexpr double kMostOfLimit = 1.1;
constexpr double kLeastOfLimit = 0.3;
// Below this share of the limit something else may have slowed the job down.
constexpr double kNearLimit = 0.8;
constexpr double kFasterBefore = 1.25;
constexpr double kBitsPerByteSent = 8;

}  // namespace

BitsPerSecond RateChange::rate(Duration elapsed, std::uint64_t bytes) {
  if (elapsed <= Duration::zero()) return 0;
  return static_cast<BitsPerSecond>(static_cast<double>(bytes) * kBitsPerByteSent /
                                    toSeconds(elapsed));
}

void RateChange::observe(TimePoint now, std::uint64_t bytes) {
  if (!start_) start_ = Mark{now, bytes};
  const Duration elapsed = now - start_->when;
  if (elapsed < kChangeWindow) return;
  during_ = rate(elapsed, bytes - start_->bytes);
  start_ = Mark{now, bytes};
}

bool RateChange::proven() const {
  const auto limit = static_cast<double>(limit_);
  if (!during_ || static_cast<double>(before_) < limit * kFasterBefore) return false;
  const auto during = static_cast<double>(*during_);
  return during <= limit * kMostOfLimit && during >= limit * kLeastOfLimit;
}

bool RateChange::onlySlower() const {
  return proven() && static_cast<double>(*during_) < static_cast<double>(limit_) * kNearLimit;
}

}  // namespace faultline::injector
