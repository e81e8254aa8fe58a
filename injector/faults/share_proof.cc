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
// whatever kQueueShare adds.
constexpr double kStruckProbes = 20;
constexpr int kFewestProbes = 1024;
// One that is lost is less than kQueueShare of them.
constexpr int kProbesForAll = 64;
constexpr double kSigmas = 4;
constexpr double kLeastOfShare = 1.0 / 3;
constexpr double kMostUnsureOfShare = 1.0 / 2;
constexpr double kMostUnsure = 1.0 / 4;

}  // namespace

int probesForShare(double share) {
  if (share <= 0) return ProbeRound::kFewFrames;
  if (share >= 1) return kProbesForAll;
  return std::max(kFewestProbes, static_cast<int>(kStruckProbes / share));
}

bool fitsShare(double share, int probes, int struck, ShareTolerance tolerance) {
  if (probes <= 0) return false;
  if (share <= 0) return struck < probes;
  const double measured = static_cast<double>(struck) / probes;
  const double spread = share < 1 ? kSigmas * std::sqrt(share * (1 - share) / probes) : 0;
  return measured >= std::max(share * kLeastOfShare, share - spread - tolerance.fewer) &&
         measured <= share + spread + tolerance.more;
}

bool fitsUnsureShare(double share, int probes, int struck, int unsure) {
  if (unsure > std::min(kMostUnsureOfShare * share, kMostUnsure) * probes) return false;
  const double tolerance = probes > 0 ? static_cast<double>(unsure) / probes : 0;
  return fitsShare(share, probes, struck, {.fewer = tolerance, .more = tolerance});
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
