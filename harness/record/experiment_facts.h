#pragma once

#include <string>
#include <vector>

#include "reports/result.h"

namespace faultline::run {

/// What is known of an experiment besides its runs.
struct ExperimentFacts {
  std::string scenario_file{};  ///< where the scenario was read from; empty: not from a file
  std::string started_at{};     ///< UTC, as result.json has it
  double duration_ms = 0;
  int blocks = 0;            ///< that were made, or would have been
  bool interrupted = false;  ///< by the user
  bool stopped = false;  ///< before its end (--fail-fast): nothing is expected of what is missing
  bool kept_awake = false;           ///< idle processors were kept awake
  std::vector<std::string> notes{};  ///< what was left out, and why
  std::string bench_error{};         ///< why the bench itself could not go on; empty: it did
  reports::Environment environment{};
};

}  // namespace faultline::run
