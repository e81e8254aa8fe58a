#include "resilient_ccl/nccl/eager_receives.h"

#include <algorithm>
#include <utility>

namespace faultline::nccl {

void EagerReceives::free(std::uint32_t number) {
  Receive& receive = receives_[number];
  receive.state = State::kFree;
  receive.wanted.reset();
  receive.orphan = false;
  free_.push_back(number);
}

EagerReceives::Arrived EagerReceives::take(Receive& receive) {
  Arrived it{.wanted = *receive.wanted, .length = receive.length, .failure = {}};
  if (receive.length > it.wanted.capacity) {
    it.failure = errorf(Code::kInvalidArgument, "a message of {} bytes meets a receive of {} bytes",
                        receive.length, it.wanted.capacity);
    it.length = 0;
    return it;
  }
  std::copy_n(receive.memory.get(), receive.length, it.wanted.data);
  ++taken_;
  return it;
}

EagerReceives::Claimed EagerReceives::claim(const channel::MessageKey& key, const Wanted& wanted) {
  const auto stream = streams_.find(channel::streamOf(key));
  if (stream == streams_.end()) return {};
  std::deque<std::uint32_t>& ahead = stream->second.ahead;
  if (ahead.empty() || receives_[ahead.front()].key != key) return {};
  const std::uint32_t number = ahead.front();
  ahead.pop_front();
  Receive& receive = receives_[number];
  receive.wanted = wanted;
  Claimed claimed;
  if (receive.state == State::kPosted) {
    claimed.claim = Claim::kWaits;
    claimed.slot = receive.slot;
    return claimed;
  }
  if (receive.state == State::kArrived) {
    claimed.claim = Claim::kArrived;
    claimed.arrived = take(receive);
  }
  free(number);
  return claimed;
}

void EagerReceives::got(const channel::StreamKey& stream, Bytes length) {
  if (longest_ == 0) return;
  int& streak = streams_[stream].streak;
  streak = length <= longest_ ? std::min(streak + 1, kStreak) : 0;
}

std::optional<EagerReceives::Post> EagerReceives::next(const channel::StreamKey& stream,
                                                       std::uint32_t asked) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return std::nullopt;
  Stream& it = found->second;
  if (it.streak < kStreak || it.ahead.size() >= kAhead) return std::nullopt;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(receives_.size()));
    receives_.emplace_back().memory =
        std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(longest_));
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  Receive& receive = receives_[number];
  receive.state = State::kPosted;
  receive.key = {.communicator = stream.communicator,
                 .sequence = asked + static_cast<std::uint32_t>(it.ahead.size()),
                 .stream = stream.stream};
  it.ahead.push_back(number);
  return Post{number, receive.key, receive.memory.get(), longest_};
}

std::optional<EagerReceives::Arrived> EagerReceives::arrived(std::uint32_t number, Bytes length) {
  Receive& receive = receives_[number];
  receive.state = State::kArrived;
  receive.length = length;
  std::optional<Arrived> it;
  if (receive.wanted) it = take(receive);
  if (receive.wanted || receive.orphan) free(number);
  return it;
}

std::optional<EagerReceives::Refused> EagerReceives::refused(std::uint32_t number) {
  Receive& receive = receives_[number];
  if (!receive.orphan) streams_[channel::streamOf(receive.key)].streak = 0;
  receive.state = State::kRefused;
  std::optional<Refused> it;
  if (receive.wanted) it = Refused{receive.key, *receive.wanted};
  if (receive.wanted || receive.orphan) free(number);
  return it;
}

std::optional<EagerReceives::Arrived> EagerReceives::ended(std::uint32_t number,
                                                           const Status& why) {
  Receive& receive = receives_[number];
  receive.state = State::kRefused;
  std::optional<Arrived> it;
  if (receive.wanted) it = Arrived{.wanted = *receive.wanted, .length = 0, .failure = why};
  if (receive.wanted || receive.orphan) free(number);
  return it;
}

void EagerReceives::forget(std::uint32_t communicator) {
  for (std::uint32_t number = 0; number < receives_.size(); ++number) {
    Receive& receive = receives_[number];
    if (receive.state == State::kFree || receive.key.communicator != communicator) continue;
    // What is still posted ends by itself; until then its memory is the fabric's.
    if (receive.state == State::kPosted) {
      receive.orphan = true;
      receive.wanted.reset();
    } else {
      free(number);
    }
  }
  std::erase_if(streams_,
                [&](const auto& stream) { return stream.first.communicator == communicator; });
}

}  // namespace faultline::nccl
