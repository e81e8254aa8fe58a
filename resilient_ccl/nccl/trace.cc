#include "resilient_ccl/nccl/trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace faultline::nccl {
namespace {

using nlohmann::json;

TimePoint beginOf(const std::vector<PeerHistory>& peers) {
  TimePoint first = TimePoint::max();
  for (const PeerHistory& peer : peers) {
    for (const auto& one : peer.history.happenings()) first = std::min(first, one.event.at);
    for (const auto& one : peer.history.samples()) first = std::min(first, one.at);
  }
  return first;
}

std::int64_t micros(Duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

json metadata(int pid, int tid, const char* what, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}};
}

/// The events of one peer.
void addPeer(json& events, int pid, const std::vector<Device>& devices, const PeerHistory& peer,
             TimePoint begin) {
  events.push_back(metadata(pid, 0, "process_name", peer.peer));
  events.push_back(metadata(pid, 1, "thread_name", "peer"));
  // When the plugin began earlier in this process it may have had more rails.
  const auto railName = [&](std::size_t rail) {
    if (rail >= devices.size()) return fmt::format("rail {}", rail);
    const std::string& first = devices[rail].interface.name;
    const std::string latest = rail < peer.devices.size() ? peer.devices[rail] : "";
    return latest.empty() || latest == first
               ? fmt::format("rail {} ({})", rail, first)
               : fmt::format("rail {} ({}, {} at the start)", rail, latest, first);
  };
  const auto trackOf = [](int rail) { return rail + 2; };  // behind the peer's own
  for (std::size_t rail = 0; rail < devices.size(); ++rail) {
    events.push_back(metadata(pid, trackOf(static_cast<int>(rail)), "thread_name", railName(rail)));
  }
  std::vector<History::Happening> happenings = peer.history.happenings();
  std::ranges::stable_sort(happenings, {}, [](const auto& one) { return one.event.at; });
  std::map<int, std::int64_t> ends;  // slices of a track must not overlap
  for (const auto& [event, cause, pause] : happenings) {
    const int track = trackOf(event.rail);
    json it{{"name", telemetry::nameOf(event.kind)}, {"cat", "rail"}, {"pid", pid}, {"tid", track}};
    it["args"] = json::object();
    if (event.kind == telemetry::EventKind::kFailedOver) {
      it["args"] = {{"cause", channel::causeName(cause)},
                    {"bytes_resent", event.bytes},
                    {"pause_ms", toMilliseconds(pause)}};
    }
    const std::int64_t to = micros(event.at + event.length - begin);
    const std::int64_t from = std::max(micros(event.at - begin), ends[track]);
    it["ts"] = from;
    if (to > from) {
      it["ph"] = "X";
      it["dur"] = to - from;
      ends[track] = to;
    } else {
      it["ph"] = "i";
      it["s"] = "t";  // of its track alone
    }
    events.push_back(std::move(it));
  }
  for (const History::Sample& sample : peer.history.samples()) {
    for (std::size_t rail = 0; rail < sample.sentByRail.size(); ++rail) {
      events.push_back({{"name", railName(rail) + " sent"},
                        {"ph", "C"},
                        {"ts", micros(sample.at - begin)},
                        {"pid", pid},
                        {"args", {{"bytes", sample.sentByRail[rail]}}}});
    }
  }
}

}  // namespace

void History::add(const Happening& happening) {
  if (happenings_.size() < kMostEvents) {
    happenings_.push_back(happening);
  } else {
    ++dropped_;
  }
}

bool History::due(TimePoint now) const {
  return samples_.empty() || now - samples_.back().at >= pause_;
}

void History::sample(TimePoint at, std::vector<Bytes> sentByRail) {
  if (samples_.size() == kMostSamples) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < samples_.size(); i += 2) std::swap(samples_[kept++], samples_[i]);
    samples_.resize(kept);
    pause_ *= 2;
  }
  samples_.push_back({at, std::move(sentByRail)});
}

std::string traceJson(const std::vector<Device>& devices, const std::vector<PeerHistory>& peers) {
  json events = json::array();
  std::uint64_t dropped = 0;
  const TimePoint begin = beginOf(peers);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    addPeer(events, static_cast<int>(i) + 1, devices, peers[i], begin);
    dropped += peers[i].history.dropped();
  }
  const json trace{{"displayTimeUnit", "ms"},
                   {"otherData", {{"process", getpid()}, {"events_dropped", dropped}}},
                   {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace faultline::nccl
