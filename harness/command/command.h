#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

/// Programs that are not ours: what a scenario says of them, and all that is to be computed from it
/// and from what they print. Where they run is nobody's business here.
namespace faultline::command {

/// Which of several matches counts.
enum class Take { kLast, kFirst, kMax, kMin, kMean, kSum };
inline constexpr std::array<std::string_view, 6> kTakeNames{"last", "first", "max",
                                                            "min",  "mean",  "sum"};

/// A number that the programs tell, in what they print or in a file that they write.
struct Metric {
  std::string name;
  std::string regex;  ///< ECMAScript, of one line, with one group; empty: `json` is used
  std::string json;   ///< file; a relative path is below the process's output folder
  std::string path;   ///< in it: keys and indices with dots between
  std::string unit;
  Take take = Take::kLast;
  bool operator==(const Metric&) const = default;
};

/// What to start, on which nodes, and what is to be made of it.
struct Command {
  std::vector<std::string> run;  ///< program and arguments
  int perNode = 1;               ///< processes on each node
  std::vector<int> nodes;        ///< that run it, each once; in the order of ranks
  std::map<std::string, std::string> environment;
  std::string workingDirectory;       ///< empty: that of faultline
  std::optional<Duration> timeLimit;  ///< empty: the run's deadline
  std::vector<int> successExit{0};
  std::string progress;  ///< file, as Metric::json; empty: it writes none
  std::vector<Metric> metrics;
  std::string throughput;  ///< name of the metric that is it; empty: runs per second

  int processes() const { return perNode * static_cast<int>(nodes.size()); }
  const Metric* find(std::string_view metric) const;
  /// Those of `metrics`; they live as long as this does.
  std::vector<std::string_view> metricNames() const;
  bool operator==(const Command&) const = default;
};

}  // namespace faultline::command
