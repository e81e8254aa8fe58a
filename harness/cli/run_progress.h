#pragma once

#include <string>

#include "base/clock.h"
#include "harness/cli/terminal.h"
#include "harness/control/experiment.h"

/// What `faultline run` shows on stderr while it runs.
namespace faultline::cli {

/// "[3/9] block 1, hot_repair: iteration 34 of 60; 21 s so far, about 34 s left". Pure.
std::string momentText(const run::Moment& moment, int iterations, Duration so_far);

/// Plain lines; on a terminal in between one line that is written over a few times a second.
class RunProgress {
 public:
  RunProgress(bool quiet, int iterations);

  void print(const std::string& line);
  void show(const run::Moment& moment);
  void clear() { line_.clear(); }

 private:
  const bool quiet_;
  const int iterations_;
  const TimePoint began_;
  TimePoint shown_{};
  LiveLine line_;
};

}  // namespace faultline::cli
