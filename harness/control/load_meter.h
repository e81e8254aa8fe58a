#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "reports/run_result.h"

namespace faultline::run {

/// What the processors of the machine did since it started, in clock ticks, all processors
/// together: the first line of /proc/stat.
struct ProcessorTicks {
  std::int64_t programs = 0;    ///< in programs and in the kernel on their behalf
  std::int64_t interrupts = 0;  ///< hard and soft
  std::int64_t stolen = 0;      ///< the host of a virtual machine gave them to somebody else
  std::int64_t all = 0;         ///< these and idle
};

/// Of the text of /proc/stat; nullopt: it is none. Pure.
std::optional<ProcessorTicks> processorTicks(std::string_view stat);

/// The average over one minute in the text of /proc/loadavg. Pure.
std::optional<double> loadAverage(std::string_view text);

/// Microseconds in which at least one program waited for a processor, of the text of
/// /proc/pressure/cpu. Pure.
std::optional<std::int64_t> waitedMicroseconds(std::string_view pressure);

/// Measures what the machine does while a run is made: from its construction until `finish`. One
/// thread.
class LoadMeter {
 public:
  /// The files are read so often: it takes some tenths of a millisecond.
  static constexpr Duration kEvery = 500ms;

  /// What is read, of the machine itself; a test puts its own in.
  struct Source {
    std::function<std::string(const char* path)> read;
    /// Processor time of this process and of the children that it has waited for.
    std::function<Duration()> ownTime;
    std::int64_t ticksPerSecond = 0;
  };
  static Source machine();

  explicit LoadMeter(TimePoint when, Source source = machine());

  /// Reads again if kEvery has passed.
  void keepUp(TimePoint when);

  /// To be called when all processes of the run are gone and waited for: their time is ours only
  /// then.
  reports::MachineLoad finish(TimePoint when);

 private:
  struct Reading {
    std::optional<ProcessorTicks> ticks;
    std::optional<std::int64_t> waited;
    std::optional<double> average;
  };
  Reading read() const;
  void add(const Reading& now);

  Source source_;
  TimePoint began_;
  Duration ownBegan_;
  Reading first_;
  Reading last_;
  TimePoint readAt_;
  std::vector<double> busy_;
  std::vector<double> stolen_;
  std::vector<double> average_;
};

}  // namespace faultline::run
