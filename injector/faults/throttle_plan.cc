#include "injector/faults/throttle_plan.h"

#include <algorithm>

namespace faultline::injector {
namespace {

constexpr double kBitsPerByte = 8;

// A starved machine sends slower than the limit; slower than this it is another fault.
constexpr double kLowestShare = 0.3;
constexpr double kHighestShare = 1.5;

// Of a window, by how near the link's own rate is. A short one is over before the backlog is, also
// where nobody has the processor time to refill it.
constexpr double kWindowSeconds = 0.0025;  // over the share by which a proof may be too fast
constexpr Duration kShortestWindow = 5ms;
constexpr Duration kLongestWindow = 50ms;
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
  plan.lowest_proof = static_cast<BitsPerSecond>(rate * kLowestShare);
  plan.highest_proof =
      std::min(static_cast<BitsPerSecond>(rate * kHighestShare), (plan.after + before) / 2);
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

}  // namespace faultline::injector
