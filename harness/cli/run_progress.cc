#include "harness/cli/run_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "reports/headline.h"

namespace faultline::cli {
namespace {

// Faster than this nobody reads, and terminals over networks fall behind.
constexpr Duration kRefresh = 200ms;

}  // namespace

std::string momentText(const run::Moment& moment, int iterations, Duration so_far) {
  // What is cut on a narrow terminal is the end: first what somebody waits for.
  std::string text;
  if (moment.left) {
    text = fmt::format("about {} left, ", reports::shortTime(toMilliseconds(*moment.left)));
  }
  text +=
      fmt::format("{} so far; [{}/{}] block {}, {}: ", reports::shortTime(toMilliseconds(so_far)),
                  moment.run + 1, moment.runs, moment.block + 1, moment.strategy);
  if (moment.phase != "running" || moment.iteration < 0) {
    text += moment.phase;
  } else if (moment.iteration < iterations) {
    text += fmt::format("iteration {} of {}", moment.iteration + 1, iterations);
  } else {
    text += fmt::format("iteration {}", moment.iteration + 1);
  }
  return text;
}

RunProgress::RunProgress(bool quiet, int iterations)
    : quiet_(quiet),
      iterations_(iterations),
      began_(now()),
      line_(STDERR_FILENO, !quiet && terminalOf(STDERR_FILENO).live,
            terminalOf(STDERR_FILENO).columns) {}

void RunProgress::print(const std::string& line) {
  // That a run begins is what the live line says.
  if (quiet_ || (line_.live() && line.ends_with(" ..."))) return;
  line_.print(line);
}

void RunProgress::show(const run::Moment& moment) {
  const TimePoint time = now();
  if (!line_.live() || time < shown_ + kRefresh) return;
  shown_ = time;
  line_.show(momentText(moment, iterations_, time - began_));
}

}  // namespace faultline::cli
