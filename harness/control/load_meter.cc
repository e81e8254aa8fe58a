#include "harness/control/load_meter.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/file_text.h"
#include "harness/stats/quantile.h"

namespace faultline::run {
namespace {

constexpr double kAllOfIt = 100;

/// The number that `text` begins with, behind blanks; takes it off.
template <typename T>
std::optional<T> takeNumber(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

Duration timeOf(int who) {
  rusage usage{};
  if (::getrusage(who, &usage) != 0) return Duration::zero();
  const auto of = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

std::optional<reports::LoadRange> rangeOf(const std::vector<double>& values) {
  const auto median = stats::median(values);
  if (!median) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(values);
  return reports::LoadRange{.min = least, .median = *median, .max = most};
}

}  // namespace

std::optional<ProcessorTicks> processorTicks(std::string_view stat) {
  constexpr std::string_view kAllProcessors = "cpu ";
  if (!stat.starts_with(kAllProcessors)) return std::nullopt;
  stat = stat.substr(0, stat.find('\n'));
  stat.remove_prefix(kAllProcessors.size());
  // user, nice, system, idle, iowait, irq, softirq, steal; guests are part of the first two.
  enum : std::uint8_t { kUser, kNice, kSystem, kIdle, kIoWait, kIrq, kSoftIrq, kSteal, kColumns };
  std::array<std::int64_t, kColumns> columns{};
  for (std::int64_t& column : columns) {
    const auto value = takeNumber<std::int64_t>(stat);
    if (!value) return std::nullopt;
    column = *value;
  }
  ProcessorTicks ticks;
  ticks.programs = columns[kUser] + columns[kNice] + columns[kSystem];
  ticks.interrupts = columns[kIrq] + columns[kSoftIrq];
  ticks.stolen = columns[kSteal];
  ticks.all = ticks.programs + ticks.interrupts + ticks.stolen + columns[kIdle] + columns[kIoWait];
  return ticks;
}

std::optional<double> loadAverage(std::string_view text) { return takeNumber<double>(text); }

std::optional<std::int64_t> waitedMicroseconds(std::string_view pressure) {
  constexpr std::string_view kTotal = " total=";
  const std::string_view some = pressure.substr(0, pressure.find('\n'));
  const std::size_t at = some.find(kTotal);
  if (!some.starts_with("some ") || at == std::string_view::npos) return std::nullopt;
  std::string_view number = some.substr(at + kTotal.size());
  return takeNumber<std::int64_t>(number);
}

LoadMeter::Source LoadMeter::machine() {
  return {.read = [](const char* path) { return fileText(path); },
          .ownTime = [] { return timeOf(RUSAGE_SELF) + timeOf(RUSAGE_CHILDREN); },
          .ticksPerSecond = ::sysconf(_SC_CLK_TCK)};
}

LoadMeter::LoadMeter(TimePoint when, Source source)
    : source_(std::move(source)),
      began_(when),
      ownBegan_(source_.ownTime()),
      first_(read()),
      last_(first_),
      readAt_(when) {
  if (first_.average) average_.push_back(*first_.average);
}

LoadMeter::Reading LoadMeter::read() const {
  return {.ticks = processorTicks(source_.read("/proc/stat")),
          .waited = waitedMicroseconds(source_.read("/proc/pressure/cpu")),
          .average = loadAverage(source_.read("/proc/loadavg"))};
}

void LoadMeter::add(const Reading& now) {
  if (now.ticks && last_.ticks && now.ticks->all > last_.ticks->all) {
    const auto all = static_cast<double>(now.ticks->all - last_.ticks->all);
    const auto share = [&](std::int64_t ticks) {
      return kAllOfIt * static_cast<double>(ticks) / all;
    };
    busy_.push_back(share(now.ticks->programs - last_.ticks->programs + now.ticks->interrupts -
                          last_.ticks->interrupts));
    stolen_.push_back(share(now.ticks->stolen - last_.ticks->stolen));
  }
  if (now.average) average_.push_back(*now.average);
  last_ = now;
}

void LoadMeter::keepUp(TimePoint when) {
  if (when - readAt_ < kEvery) return;
  readAt_ = when;
  add(read());
}

reports::MachineLoad LoadMeter::finish(TimePoint when) {
  add(read());
  reports::MachineLoad load;
  load.samples = static_cast<int>(busy_.size());
  load.busy_pct = rangeOf(busy_);
  load.stolen_pct = rangeOf(stolen_);
  load.load_average = rangeOf(average_);
  if (first_.ticks && last_.ticks && last_.ticks->all > first_.ticks->all) {
    const double own =
        toSeconds(source_.ownTime() - ownBegan_) * static_cast<double>(source_.ticksPerSecond);
    const auto programs = static_cast<double>(last_.ticks->programs - first_.ticks->programs);
    const auto all = static_cast<double>(last_.ticks->all - first_.ticks->all);
    // Interrupts on the time of a program of ours may be counted as its own.
    load.others_pct = kAllOfIt * std::max(0., programs - own) / all;
  }
  if (first_.waited && last_.waited && when > began_) {
    const double seconds = static_cast<double>(*last_.waited - *first_.waited) / 1e6;
    load.waiting_pct = std::clamp(kAllOfIt * seconds / toSeconds(when - began_), 0., kAllOfIt);
  }
  return load;
}

}  // namespace faultline::run
