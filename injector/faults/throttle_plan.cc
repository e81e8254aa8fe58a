#include "injector/faults/throttle_plan.h"

#include <algorithm>

#include "base/units.h"

namespace faultline::injector {
namespace {

constexpr double kBitsPerByte = 8;

// What counts as the rate that was asked for. A half is 1.5 times a third: between 0.8 and 1.2
// times either, no rate is both.
constexpr double kLowestOfAsked = 0.8;
constexpr double kHighestOfAsked = 1.2;
// A starved machine sends slower than the limit; slower than this it is another fault.
constexpr double kLowestShare = 0.3;
constexpr double kHighestShare = 1.5;

// Of a window. Both of its ends are seen up to a millisecond late, on a busy machine several: of
// 60 ms a tenth at most. The nearer the link's own rate is, the less a rate may be wrong.
constexpr double kWindowSeconds = 0.006;  // over the share by which a proof may be too fast
constexpr Duration kShortestWindow = 60ms;
constexpr Duration kLongestWindow = 250ms;
// A rate is measured over so many frames at least, so that one more or less does not matter.
constexpr double kFramesPerWindow = 16;
constexpr std::size_t kSmallestFrame = 46;   // Ethernet pads shorter ones
constexpr std::size_t kLargestFrame = 1400;  // fits every usual MTU
constexpr std::size_t kEthernetHeader = 14;

// The backlog bridges the time in which nobody refills it.
constexpr double kBacklogSeconds = 0.010;
constexpr Bytes kFramesOfBacklog = 4;

}  // namespace

Result<ThrottlePlan> planThrottle(BitsPerSecond before, const ParameterValue& parameter) {
  ThrottlePlan plan;
  plan.before = before;
  if (const auto* const percent = std::get_if<Percent>(&parameter)) {
    plan.after = static_cast<BitsPerSecond>(static_cast<double>(before) * percent->value / 100);
    plan.after = std::max(plan.after, kSlowestRate);
  } else {
    plan.after = std::get<Rate>(parameter).bitsPerSecond;
  }
  if (plan.after >= before) {
    return errorf(Code::kInvalidArgument, "throttle: {} is not slower than the link, which has {}",
                  formatParameter(parameter), formatRate(before));
  }
  const auto rate = static_cast<double>(plan.after);
  const BitsPerSecond between = (plan.after + before) / 2;
  plan.lowest_proof = static_cast<BitsPerSecond>(rate * kLowestOfAsked);
  plan.highest_proof = std::min(static_cast<BitsPerSecond>(rate * kHighestOfAsked), between);
  plan.lowest_slower = static_cast<BitsPerSecond>(rate * kLowestShare);
  plan.highest_slower = std::min(static_cast<BitsPerSecond>(rate * kHighestShare), between);
  const double bytes_per_second = rate / kBitsPerByte;
  const double too_fast = static_cast<double>(plan.highest_proof) / rate - 1;
  const Duration window = too_fast > kWindowSeconds / toSeconds(kLongestWindow)
                              ? std::max(fromSeconds(kWindowSeconds / too_fast), kShortestWindow)
                              : kLongestWindow;
  const double frame = bytes_per_second * toSeconds(window) / kFramesPerWindow;
  plan.probe_frame = std::clamp(static_cast<std::size_t>(frame), kSmallestFrame, kLargestFrame);
  const auto on_wire = static_cast<double>(plan.probe_frame + kEthernetHeader);
  plan.window = std::max(window, fromSeconds(kFramesPerWindow * on_wire / bytes_per_second));
  plan.probe_backlog = std::max(static_cast<Bytes>(bytes_per_second * kBacklogSeconds),
                                kFramesOfBacklog * static_cast<Bytes>(on_wire));
  return plan;
}

ThrottleProof proofOf(const ThrottlePlan& plan, const std::optional<MeasuredRate>& measured) {
  if (!measured) return ThrottleProof::kNothing;
  const BitsPerSecond rate = measured->rate;
  if (rate >= plan.lowest_proof && rate <= plan.highest_proof) return ThrottleProof::kAsAsked;
  if (rate >= plan.lowest_slower && rate <= plan.highest_slower) return ThrottleProof::kSlower;
  return ThrottleProof::kNothing;
}

std::string inWords(const ThrottlePlan& plan, const std::optional<MeasuredRate>& measured,
                    bool before_known) {
  constexpr double kMega = 1e6;
  const std::string asked =
      fmt::format("asked: {}, before: {}", formatRate(plan.after),
                  before_known ? formatRate(plan.before) : std::string("not known"));
  if (!measured) {
    return fmt::format("never a backlog for {:.0f} ms altogether ({})", toMilliseconds(plan.window),
                       asked);
  }
  const bool only_slower = proofOf(plan, measured) == ThrottleProof::kSlower;
  return fmt::format("{}{:.3g} Mbit/s left the queue during {:.0f} ms with a backlog ({})",
                     only_slower ? "slower than before, and no more is shown: " : "",
                     static_cast<double>(measured->rate) / kMega, toMilliseconds(measured->window),
                     asked);
}

}  // namespace faultline::injector
