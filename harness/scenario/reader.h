#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "harness/scenario/scenario.h"

namespace faultline::scenario {

/// Bigger files are refused before they are parsed. A scenario is a few KiB, but that of a result
/// has the texts of its schedules, each byte as two where it needs an escape (schedule_reader.h).
inline constexpr std::size_t kMaximumFileBytes = 4 * 1024 * 1024;

/// One mistake. Lines and columns start at 1; line 0 when the mistake has no place in the file.
struct Mistake {
  std::string source;  ///< the file as named by the user, or "--set path=value"
  int line = 0;
  int column = 0;
  std::string message;

  /// "file:line:column: message", or "source: message" where there is no line.
  std::string toString() const;
};

/// A scenario, or every mistake found, in the order of the file; never both.
struct ReadResult {
  std::optional<Scenario> scenario;
  std::vector<Mistake> mistakes;
  bool ok() const { return scenario.has_value(); }
};

/// Where a scenario is to be run. On this machine the programs of its faults (`external`) must be
/// there; whoever lists a scenario or replays its transcript does not need them.
enum class RunsOn { kAnyMachine, kThisMachine };

/// A section `cluster` that takes the place of a scenario's own.
struct ClusterFile {
  std::string name;  ///< in messages; empty: there is none
  std::string text;  ///< YAML, with the key `cluster` alone
};
/// Reads such a file, or a word that a kind of clusters knows (site::Kind::section); kNotFound and
/// others with what was attempted.
Result<ClusterFile> readClusterFile(const std::string& path);

/// The section alone, or every mistake in it; never both.
struct ClusterResult {
  std::optional<Cluster> cluster;
  std::vector<Mistake> mistakes;
};
/// What such a file says, without a scenario that would run there.
ClusterResult readCluster(const ClusterFile& file);

/// Reads YAML text. `source` names it in messages, and files that it names are relative to the
/// folder of that. `overrides` are `path=value`, for example
/// "workload.iterations=10" or "faults.0.duration=2s", put in before anything is checked, and after
/// the section of `cluster`.
/// Never throws, whatever the text is.
ReadResult readScenario(std::string_view yaml, const std::string& source,
                        std::span<const std::string> overrides = {},
                        RunsOn machine = RunsOn::kAnyMachine, const ClusterFile& cluster = {});

/// The same for a file.
ReadResult readScenarioFile(const std::string& path, std::span<const std::string> overrides = {},
                            RunsOn machine = RunsOn::kAnyMachine, const ClusterFile& cluster = {});

}  // namespace faultline::scenario
