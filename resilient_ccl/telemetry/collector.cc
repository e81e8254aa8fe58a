#include "resilient_ccl/telemetry/collector.h"

namespace faultline::telemetry {
namespace {

bool isTransfer(EventKind kind) {
  return kind == EventKind::kChunkSent || kind == EventKind::kChunkArrived ||
         kind == EventKind::kMessageSent || kind == EventKind::kMessageArrived;
}

}  // namespace

Collector::Collector(Recorder& recorder)
    : recorder_(recorder), drains_(kPause, [this] { drain(); }) {
  drains_.between([this] { events_.reserve(kMostEvents); });
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
  return drains_.between([this] {
    drain();
    return Trace{
        .events = events_, .made = recorder_.made(), .dropped = recorder_.dropped() + unkept_};
  });
}

}  // namespace faultline::telemetry
