#include "tests/support/sim_trace.h"

#include <array>

namespace faultline::test {

using channel::Link;

std::string_view inputName(Input input) {
  constexpr std::array<std::string_view, 12> kNames{"client", "tick",    "stall",  "datagram",
                                                    "chunk",  "port",    "reset",  "hello",
                                                    "opened", "refused", "fenced", "start"};
  return kNames.at(static_cast<std::size_t>(input));
}

std::string_view phaseName(Link::Phase phase) {
  constexpr std::array<std::string_view, 4> kNames{"down", "opening", "up", "fencing"};
  return kNames.at(static_cast<std::size_t>(phase));
}

void SimTrace::add(TimePoint when, const std::string& line) {
  constexpr std::size_t kLines = 60;
  if (lines_.size() == kLines) lines_.pop_front();
  lines_.push_back(
      fmt::format("{:9.3f} ms  {}", toMilliseconds(when.time_since_epoch() - 1s), line));
}

void SimTrace::addDatagram(TimePoint when, int end, int path, const channel::Datagram& datagram) {
  using channel::RecordType;
  for (const channel::Record& record : datagram.records) {
    const bool word =
        record.type == RecordType::kRailFailed || record.type == RecordType::kRailFenced;
    if (!word) continue;
    const auto said = channel::payloadAs<channel::RailRecord>(record);
    if (!said.ok()) continue;
    add(when,
        fmt::format("end {}: hears over path {} that rail {} {} at the other, epoch {}", end, path,
                    said->rail, record.type == RecordType::kRailFailed ? "has failed" : "is closed",
                    said->epoch));
  }
}

}  // namespace faultline::test
