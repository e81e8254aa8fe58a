#include "resilient_ccl/telemetry/collector.h"

namespace faultline::telemetry {
namespace {

bool isTransfer(EventKind kind) {
  return kind == EventKind::kChunkSent || kind == EventKind::kChunkArrived ||
         kind == EventKind::kMessageSent || kind == EventKind::kMessageArrived;
}

}  // namespace

Collector::Collector(Recorder& recorder) : recorder_(recorder) {
  events_.reserve(kMostEvents);
  thread_ = std::thread([this] { run(); });
}

Collector::~Collector() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Collector::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPause, [this] { return stopping_; })) drain();
}

void Collector::drain() {
  while (const auto event = recorder_.take()) {
    if (events_.size() < (isTransfer(event->kind) ? kMostTransfers : kMostEvents)) {
      events_.push_back(*event);
    } else {
      ++unkept_;
    }
  }
}

Trace Collector::trace() {
  const std::lock_guard lock(mutex_);
  drain();
  return {.events = events_, .made = recorder_.made(), .dropped = recorder_.dropped() + unkept_};
}

}  // namespace faultline::telemetry
