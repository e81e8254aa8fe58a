#include "harness/record/hang_proof.h"

#include <algorithm>

namespace faultline::run {

void HangProof::damaged(TimePoint when) {
  if (when <= known_) return;
  known_ = when;
  watches_.push_back({.damaged = when, .sampled = {}, .payload = {}});
}

bool HangProof::wantsPayload(TimePoint now) const {
  return std::ranges::any_of(watches_, [&](const Watch& watch) {
    return !watch.payload && now >= watch.damaged + kDrainTime;
  });
}

void HangProof::payload(TimePoint now, std::uint64_t delivered) {
  for (Watch& watch : watches_) {
    if (watch.payload || now < watch.damaged + kDrainTime) continue;
    watch.payload = delivered;
    watch.sampled = now;
  }
}

std::optional<TimePoint> HangProof::latest() const {
  if (watches_.empty()) return std::nullopt;
  return watches_.back().damaged;
}

HangProof::Hang HangProof::judge(std::uint64_t delivered) const {
  Hang hang{
      .fault = watches_.back().damaged, .payload = {}, .watchedFrom = watches_.back().damaged};
  for (const Watch& watch : watches_) {
    if (!watch.payload) continue;
    hang = {watch.damaged, delivered - *watch.payload, watch.sampled};
    if (*hang.payload == 0) break;
  }
  return hang;
}

}  // namespace faultline::run
