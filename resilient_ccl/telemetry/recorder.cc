#include "resilient_ccl/telemetry/recorder.h"

#include <utility>

namespace faultline::telemetry {

std::string_view nameOf(Mode mode) {
  switch (mode) {
    case Mode::kOff:
      return "off";
    case Mode::kNull:
      return "null";
    case Mode::kOn:
      return "on";
  }
  return "unknown";
}

Recorder::Recorder(Mode mode) : keeps_(mode == Mode::kOn), ring_(keeps_ ? kRing : 1) {}

// Not inline: with kNull, too, the event has to be made for the call.
void Recorder::record(const Event& event) {
  increment(made_);
  if (keeps_ && !ring_.push(Event(event))) increment(dropped_);
}

}  // namespace faultline::telemetry
