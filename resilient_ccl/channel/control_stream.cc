#include "resilient_ccl/channel/control_stream.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace faultline::channel {

// Sequence numbers count from 1 on the wire (0 means unreliable) and from 0 in receipts.

void ControlStream::send(RecordType type, std::span<const std::byte> payload, bool urgent) {
  assert(payload.size() <= Record::kMaxPayload);
  Open& open = open_.emplace_back();
  open.type = type;
  open.urgent = urgent;
  open.size = payload.size();
  std::ranges::copy(payload, open.payload.begin());
}

bool ControlStream::mayBegin(bool urgent) const {
  return acknowledged_.reaches(nextSequence_ - 1 + (urgent ? 0 : kReserved));
}

void ControlStream::collect(
    TimePoint now, int firstTurn,
    const std::function<void(const Record&, int turn, bool urgent)>& transmit) {
  for (const bool urgent : {true, false}) {
    for (Open& open : open_) {
      if (open.urgent != urgent) continue;
      if (open.sequence == 0) {
        if (!mayBegin(urgent)) break;  // the receiver could not remember it
        open.sequence = nextSequence_++;
      }
      if (open.due > now) continue;
      if (open.attempts == 0) open.firstTurn = firstTurn;
      transmit({open.type, open.sequence, {open.payload.data(), open.size}},
               open.firstTurn + open.attempts, urgent);
      const Duration pause =
          std::min(kLongestPause, kFirstPause * (1 << std::min(open.attempts, 10)));
      open.due = now + pause;
      ++open.attempts;
    }
  }
}

TimePoint ControlStream::nextDeadline() const {
  TimePoint next = TimePoint::max();
  for (const Open& open : open_) {
    if (open.sequence != 0 || mayBegin(open.urgent)) next = std::min(next, open.due);
  }
  return next;
}

void ControlStream::acknowledged(const Receipt& receipt) {
  if (!receipt.covers(acknowledged_) || receipt.base >= nextSequence_) return;
  acknowledged_ = receipt;
  std::erase_if(open_, [&](const Open& open) {
    return open.sequence != 0 && receipt.has(open.sequence - 1);
  });
}

bool ControlStream::accept(std::uint64_t sequence) {
  if (sequence == 0 || !received_.reaches(sequence - 1)) return false;
  return received_.add(sequence - 1);
}

}  // namespace faultline::channel
