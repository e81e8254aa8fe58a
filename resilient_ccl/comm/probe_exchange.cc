#include "resilient_ccl/comm/probe_exchange.h"

#include <algorithm>
#include <cmath>

namespace faultline::comm {
namespace {

/// What stands for a message that there is no time for: one byte.
constexpr Bytes kEmpty = 1;

}  // namespace

ProbeExchange::Shape ProbeExchange::shapeFor(double bandwidth, double latency,
                                             std::uint32_t round) {
  const Duration time = kWarm + (round == 1 ? kGlance : kMeasured);
  const auto carried = [bandwidth](Duration of) {
    return static_cast<Bytes>(bandwidth * toSeconds(of));
  };
  Shape shape;
  shape.message = std::clamp(carried(kMessage), kSmallest, kLargest);
  shape.messages = static_cast<int>(carried(time) / shape.message) + 1;
  shape.warm = carried(kWarm);
  const double hidden = 2 * latency * bandwidth / static_cast<double>(shape.message);
  shape.window = kWindow + static_cast<int>(std::ceil(hidden));
  shape.longest = kPatience * time;
  shape.gap = fromSeconds(static_cast<double>(shape.message) / bandwidth / kBurst);
  return shape;
}

ProbeExchange::ProbeExchange(const Shape& shape, std::optional<int> to, std::optional<int> from,
                             const channel::MessageKey& key, std::uint64_t token, MessagePort& port)
    : shape_(shape), to_(to), from_(from), key_(key), token_(token), port_(port) {
  if (to_) out_.resize(static_cast<std::size_t>(shape.message));
  if (!from_) return;
  in_.resize(static_cast<std::size_t>(shape.message * shape.window));
  placeOf_.resize(static_cast<std::size_t>(shape.messages));
  for (int place = 0; place < shape.window; ++place) freePlaces_.push_back(place);
}

void ProbeExchange::start(TimePoint now) {
  begun_ = now;
  postReceives();
  postSends(now);
}

void ProbeExchange::postSends(TimePoint now) {
  while (to_ && sends_ < shape_.messages && sends_ - sendsDone_ < shape_.window) {
    const Bytes length = now - begun_ < shape_.longest ? shape_.message : kEmpty;
    channel::MessageKey key = key_;
    key.sequence = static_cast<std::uint32_t>(sends_);
    sentBytes_ += length;
    port_.postSend(*to_, key, out_.data(), length, token_ | static_cast<std::uint64_t>(sends_++));
  }
}

void ProbeExchange::postReceives() {
  while (from_ && receives_ < shape_.messages && !freePlaces_.empty()) {
    const int place = freePlaces_.back();
    freePlaces_.pop_back();
    placeOf_[static_cast<std::size_t>(receives_)] = place;
    channel::MessageKey key = key_;
    key.sequence = static_cast<std::uint32_t>(receives_);
    port_.postReceive(*from_, key, in_.data() + place * shape_.message, shape_.message,
                      token_ | kReceive | static_cast<std::uint64_t>(receives_++));
  }
}

void ProbeExchange::messageDone(std::uint64_t token, Bytes length, TimePoint now) {
  const std::uint64_t index = token & (kReceive - 1);
  if ((token & kReceive) == 0) {
    ++sendsDone_;
    return postSends(now);
  }
  ++receivesDone_;
  freePlaces_.push_back(placeOf_[index]);
  bytes_ += length;
  if (length == shape_.message) latest_ = {bytes_, now};
  const bool isWarm = bytes_ >= shape_.warm || now - begun_ >= shape_.longest / kPatience;
  const bool sameBurst =
      warm_ && warm_->when == latestArrival_ && now - latestArrival_ < shape_.gap;
  if ((!warm_ && isWarm) || sameBurst) warm_ = {bytes_, now};
  latestArrival_ = now;
  postReceives();
}

bool ProbeExchange::finished() const {
  return (!to_ || sendsDone_ == shape_.messages) && (!from_ || receivesDone_ == shape_.messages);
}

double ProbeExchange::rate() const {
  if (!warm_) return 0;
  if (latest_.when > warm_->when) {
    return static_cast<double>(latest_.bytes - warm_->bytes) /
           toSeconds(latest_.when - warm_->when);
  }
  // So slow that hardly anything came in time.
  const double seconds = toSeconds(warm_->when - begun_);
  return seconds > 0 ? static_cast<double>(bytes_) / seconds : 0;
}

}  // namespace faultline::comm
