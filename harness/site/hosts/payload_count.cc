#include "harness/site/hosts/payload_count.h"

namespace faultline::hosts {
namespace {

// More than one interval of the counters: each look sees some of them.
constexpr Duration kInterval = 100ms;
// Of all rails in that time.
constexpr std::uint64_t kQuiet = 16 << 10;

}  // namespace

std::uint64_t PayloadCount::add(TimePoint when, std::uint64_t received) {
  if (!last_) last_ = {when, received};
  const Duration elapsed = when - last_->when;
  if (elapsed < kInterval) return payload_;
  // An interface that is not there now has carried nothing.
  const std::uint64_t grown = received > last_->received ? received - last_->received : 0;
  // Of a look that comes late, in proportion.
  const auto quiet = static_cast<std::uint64_t>(static_cast<double>(kQuiet) *
                                                (toSeconds(elapsed) / toSeconds(kInterval)));
  if (grown > quiet) payload_ += grown;
  last_ = {when, received};
  return payload_;
}

}  // namespace faultline::hosts
