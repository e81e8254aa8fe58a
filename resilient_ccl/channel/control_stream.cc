#include "resilient_ccl/channel/control_stream.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "resilient_ccl/channel/mutant.h"

namespace faultline::channel {

// Sequence numbers count from 1 on the wire (0 means unreliable) and from 0 in receipts.

void ControlStream::send(RecordType type, std::span<const std::byte> payload, bool urgent) {
  assert(payload.size() <= Record::kMaxPayload);
  Open& open = open_.emplace_back();
  open.sequence = nextSequence_++;
  open.type = type;
  open.urgent = urgent;
  open.size = payload.size();
  std::ranges::copy(payload, open.payload.begin());
}

void ControlStream::collect(
    TimePoint now, const std::function<void(const Record&, int attempt, bool urgent)>& transmit) {
  for (Open& open : open_) {
    if (!acknowledged_.reaches(open.sequence - 1)) break;  // the receiver could not remember it
    if (open.due > now) continue;
    transmit({open.type, open.sequence, {open.payload.data(), open.size}}, open.attempts,
             open.urgent);
    const Duration pause =
        std::min(kLongestPause, kFirstPause * (1 << std::min(open.attempts, 10)));
    open.due = mutant(Mutant::kRecordNotRepeated) ? TimePoint::max() : now + pause;
    ++open.attempts;
  }
}

TimePoint ControlStream::nextDeadline() const {
  TimePoint next = TimePoint::max();
  for (const Open& open : open_) {
    if (!acknowledged_.reaches(open.sequence - 1)) break;
    next = std::min(next, open.due);
  }
  return next;
}

void ControlStream::acknowledged(const Receipt& receipt) {
  if (!receipt.covers(acknowledged_) || receipt.base >= nextSequence_) return;
  acknowledged_ = receipt;
  std::erase_if(open_, [&](const Open& open) { return receipt.has(open.sequence - 1); });
}

bool ControlStream::accept(std::uint64_t sequence) {
  if (sequence == 0 || !received_.reaches(sequence - 1)) return false;
  return received_.add(sequence - 1) || mutant(Mutant::kRepetitionObeyed);
}

}  // namespace faultline::channel
