#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// The rules of the JSON trace format (Trace Event Format, "JSON Object Format") as far as we use
/// it, and of Perfetto's importer, which drops slices of a track that overlap without nesting
/// (perfetto.dev/docs/faq). A slice of no length is against no rule; but readers that make a begin
/// and an end of it (speedscope) confuse it with the one that begins at the same moment.
namespace faultline::testing {

using TraceJson = nlohmann::ordered_json;

/// What is wrong with a trace, in words.
inline std::vector<std::string> traceViolations(const TraceJson& trace) {
  using Track = std::pair<int, int>;
  std::vector<std::string> wrong;
  std::map<Track, std::vector<std::pair<double, double>>> slices;
  std::set<Track> named;
  std::set<int> named_processes;
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array()) {
    return {"no object with a list traceEvents"};
  }
  for (const TraceJson& event : trace["traceEvents"]) {
    const auto say = [&](const char* what) {
      wrong.push_back(fmt::format("{}: {}", what, event.dump()));
    };
    const auto number = [&](const char* key) {
      return event.contains(key) && event[key].is_number();
    };
    const auto integer = [&](const char* key) {
      return event.contains(key) && event[key].is_number_integer();
    };
    if (!event.is_object() || !event.contains("ph") || !event.contains("name") ||
        !event["name"].is_string() || !integer("pid")) {
      say("not an event");
      continue;
    }
    const std::string phase = event["ph"];
    const int pid = event["pid"];
    const bool has_track = phase == "X" || phase == "i";
    if (has_track && !integer("tid")) {
      say("no track");
      continue;
    }
    if (phase != "M" && (!number("ts") || event["ts"] < 0)) say("no time");
    if (phase == "X") {
      if (!number("dur") || event["dur"] <= 0) {
        say("no duration");
        continue;
      }
      const double begin = event["ts"];
      slices[{pid, event["tid"]}].emplace_back(begin, begin + event["dur"].get<double>());
    } else if (phase == "i") {
      const std::string scope = event.value("s", "");
      if (scope != "g" && scope != "p" && scope != "t") say("no scope");
      slices[{pid, event["tid"]}];
    } else if (phase == "C") {
      if (!event.contains("args") || event["args"].empty()) say("a counter without a value");
      for (const auto& [series, value] : event["args"].items()) {
        if (!value.is_number()) say("a counter that does not count");
      }
      if (!named_processes.contains(pid)) say("a counter of no named process");
    } else if (phase == "M") {
      const std::string what = event["name"];
      if (what == "process_name") named_processes.insert(pid);
      if (what == "thread_name") named.insert({pid, event["tid"]});
      const bool name = what == "process_name" || what == "thread_name";
      if (name && !event["args"]["name"].is_string()) say("no name");
      if (!name && what != "process_sort_index") say("unknown metadata");
    } else {
      say("a phase that we do not use");
    }
  }
  for (auto& [track, list] : slices) {
    const std::string where = fmt::format("track {}/{}", track.first, track.second);
    if (!named.contains(track)) wrong.push_back(where + " has no name");
    // Outer slices before inner ones; a stack of those that are open.
    std::ranges::sort(list, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    std::vector<double> open;
    for (const auto& [begin, end] : list) {
      while (!open.empty() && open.back() <= begin) open.pop_back();
      if (!open.empty() && end > open.back()) {
        wrong.push_back(
            fmt::format("{}: {} to {} overlaps the one until {}", where, begin, end, open.back()));
      }
      open.push_back(end);
    }
  }
  return wrong;
}

}  // namespace faultline::testing
