#include "reports/machine_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace faultline::reports {
namespace {

/// From here on other programs slow a run down by more than equal runs usually differ.
constexpr double kBusyOthersPercent = 10;
/// Of what the host takes a run cannot know when: a little of it is a lot.
constexpr double kBusyStolenPercent = 2;

/// What the runs have of one share: a single value, or a range.
class Collected {
 public:
  void add(const std::optional<double>& value) {
    if (value) add(LoadRange{*value, *value, *value});
  }
  void add(const std::optional<LoadRange>& range) {
    if (!range) return;
    medians_.push_back(range->median);
    min_ = medians_.size() == 1 ? range->min : std::min(min_, range->min);
    max_ = medians_.size() == 1 ? range->max : std::max(max_, range->max);
  }
  std::optional<LoadRange> range() && {
    if (medians_.empty()) return std::nullopt;
    std::ranges::sort(medians_);
    const std::size_t middle = medians_.size() / 2;
    const double median =
        medians_.size() % 2 == 1 ? medians_[middle] : (medians_[middle - 1] + medians_[middle]) / 2;
    return LoadRange{.min = min_, .median = median, .max = max_};
  }

 private:
  std::vector<double> medians_;
  double min_ = 0;
  double max_ = 0;
};

/// "3 of 9 runs, up to 63 % (hot_repair, block 2)"; empty: none reaches the limit.
template <typename Share>
std::string beyond(std::span<const Run> runs, double limit, Share share) {
  std::size_t count = 0;
  const Run* worst = nullptr;
  for (const Run& run : runs) {
    const std::optional<double> value = run.load ? share(*run.load) : std::nullopt;
    if (!value || *value < limit) continue;
    ++count;
    if (worst == nullptr || *value > *share(*worst->load)) worst = &run;
  }
  if (worst == nullptr) return "";
  return fmt::format("in {} of {} runs, up to {:.0f} % ({}, block {})", count, runs.size(),
                     *share(*worst->load), worst->strategy, worst->block + 1);
}

}  // namespace

std::optional<LoadOfRuns> loadOf(std::span<const Run> runs) {
  LoadOfRuns load;
  Collected others, busy, stolen, average, waiting;
  for (const Run& run : runs) {
    if (!run.load) continue;
    ++load.runs;
    others.add(run.load->others_pct);
    busy.add(run.load->busy_pct);
    stolen.add(run.load->stolen_pct);
    average.add(run.load->load_average);
    waiting.add(run.load->waiting_pct);
  }
  if (load.runs == 0) return std::nullopt;
  load.others_pct = std::move(others).range();
  load.busy_pct = std::move(busy).range();
  load.stolen_pct = std::move(stolen).range();
  load.load_average = std::move(average).range();
  load.waiting_pct = std::move(waiting).range();
  return load;
}

std::string busyNote(std::span<const Run> runs) {
  const std::string others =
      beyond(runs, kBusyOthersPercent, [](const MachineLoad& load) { return load.others_pct; });
  const std::string stolen = beyond(runs, kBusyStolenPercent, [](const MachineLoad& load) {
    return load.stolen_pct ? std::optional(load.stolen_pct->median) : std::nullopt;
  });
  std::string text;
  if (!others.empty()) {
    text = fmt::format("other programs used {:.0f} % or more of the processors {}",
                       kBusyOthersPercent, others);
  }
  if (!stolen.empty()) {
    text += fmt::format("{}the host of this virtual machine took {:.0f} % or more of them {}",
                        text.empty() ? "" : "; ", kBusyStolenPercent, stolen);
  }
  return text.empty() ? "" : "the machine was busy: " + text + "; speeds may be noise";
}

}  // namespace faultline::reports
