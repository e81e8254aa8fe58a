#include "injector/faults/share_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "injector/faults/probe_round.h"

namespace faultline::injector {
namespace {

// So many probes that about twenty should be struck: then a third of the share, which is the least
// that is believed, is far from nothing. And never fewer than it takes to tell a half from a third,
// whatever the queue on the way adds.
constexpr double kStruckProbes = 20;
constexpr int kFewestProbes = 1024;
// A frame of the job in a full queue on the way may push a probe out.
constexpr double kQueueShare = 0.05;
constexpr double kSigmas = 4;
constexpr double kLeastOfShare = 1.0 / 3;

}  // namespace

int probesForShare(double share) {
  if (share <= 0 || share >= 1) return ProbeRound::kFewFrames;
  return std::max(kFewestProbes, static_cast<int>(kStruckProbes / share));
}

bool fitsShare(double share, int sent, int struck) {
  if (share <= 0) return struck < sent;
  if (share >= 1) return struck == sent;
  const double measured = static_cast<double>(struck) / sent;
  const double spread = kSigmas * std::sqrt(share * (1 - share) / sent) + kQueueShare;
  return measured >= std::max(share * kLeastOfShare, share - spread) && measured <= share + spread;
}

std::string shareInWords(std::string_view done, double share, int sent, int struck) {
  constexpr double kZ = 1.96;  // of 95 %
  const double n = std::max(sent, 1);
  const double measured = std::clamp(struck / n, 0.0, 1.0);
  const double middle = (measured + kZ * kZ / (2 * n)) / (1 + kZ * kZ / n);
  const double half =
      kZ * std::sqrt(measured * (1 - measured) / n + kZ * kZ / (4 * n * n)) / (1 + kZ * kZ / n);
  return fmt::format("{:.3g} % {} ({:.3g} to {:.3g} % with 95 % certainty; asked: {:.3g} %)",
                     measured * kWholeInPercent, done,
                     std::max(0.0, middle - half) * kWholeInPercent,
                     std::min(1.0, middle + half) * kWholeInPercent, share * kWholeInPercent);
}

}  // namespace faultline::injector
