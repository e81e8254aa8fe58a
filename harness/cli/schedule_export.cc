#include "harness/cli/schedule_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/units.h"
#include "resilient_ccl/reduction/reduce.h"
#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/msccl/exporter.h"

namespace faultline::cli {
namespace {

namespace msccl = schedule::msccl;

/// Operations that the search for a size may make and look at: some seconds.
constexpr std::int64_t kMostWork = 1'000'000;
/// A size is good when the schedule is at most so much slower than with the size asked for.
constexpr double kGoodEnough = 1.02;

/// A schedule that fits.
struct Fit {
  msccl::Algo algo;
  std::int64_t elements = 0;
  int segments = 1;
  double time = 0;
};

std::int64_t dataOf(const schedule::Schedule& plan) {
  return schedule::dataElements(plan.collective(), plan.elements());
}

/// Buffers, in elements, whose pieces are likely to be equal: multiples of what ranks and segments
/// divide, by numbers with many divisors, which shares of unequal ranks divide.
std::set<std::int64_t> likelySizes(int ranks, int segments) {
  constexpr std::array<std::int64_t, 14> kFactors{1,  2,  3,  4,   6,   8,   12,
                                                  24, 36, 60, 120, 180, 240, 360};
  std::set<std::int64_t> sizes;
  for (const std::int64_t base : {ranks, ranks - 1, ranks * (ranks - 1), 1}) {
    for (const std::int64_t factor : kFactors) {
      const std::int64_t size = base * factor * segments;
      if (size >= ranks && size <= msccl::kMaxChunks) sizes.insert(size);
    }
  }
  return sizes;
}

class Search {
 public:
  Search(const ScheduleFlags& flags, const ScheduleJob& job) : flags_(flags), job_(job) {}

  /// The best that there is within the work allowed.
  std::optional<Fit> find() {
    std::vector<int> segments;
    for (int k = *job_.segments; k >= 1; k /= 2) {
      segments.push_back(k);
      if (flags_.segments) break;
    }
    // The size itself, where it was asked for, with fewer segments.
    for (const int k : segments) {
      if (flags_.sizeGiven && !best_) consider(dataOf(*job_.schedule), k);
    }
    if (best_) return best_;
    const double aim = timeOf(*job_.schedule).value_or(0);
    for (const int k : segments) {
      for (const std::int64_t size : likelySizes(flags_.ranks, k)) consider(size, k);
      if (best_ && best_->time <= aim * kGoodEnough) return best_;
    }
    return best_;
  }

  /// The multiple of a size that fits which is nearest to `wanted` and fits as well.
  std::int64_t nearest(const Fit& fit, std::int64_t wanted) {
    const std::int64_t times =
        std::max<std::int64_t>(1, (wanted + fit.elements / 2) / fit.elements);
    work_ = 0;
    return fitOf(fit.elements * times, fit.segments) ? fit.elements * times : fit.elements;
  }

 private:
  std::optional<double> timeOf(const schedule::Schedule& plan) const {
    const auto cost = schedule::costOf(plan, job_.bandwidths, job_.cost);
    return cost.ok() ? std::optional(cost->time) : std::nullopt;
  }

  std::optional<Fit> fitOf(std::int64_t elements, int segments) {
    if (work_ > kMostWork) return std::nullopt;
    const auto made = job_.remake(elements, segments);
    if (!made.ok()) return std::nullopt;
    for (int rank = 0; rank < (*made)->ranks(); ++rank) {
      for (int lane = 0; lane < (*made)->lanes(); ++lane) work_ += (*made)->opCount(rank, lane);
    }
    auto algo = msccl::exportSchedule(**made);
    const std::optional<double> time = timeOf(**made);
    if (!algo.ok() || !time) return std::nullopt;
    return Fit{std::move(*algo), elements, segments, *time};
  }

  void consider(std::int64_t elements, int segments) {
    std::optional<Fit> fit = fitOf(elements, segments);
    if (fit && (!best_ || fit->time < best_->time)) best_ = std::move(fit);
  }

  const ScheduleFlags& flags_;
  const ScheduleJob& job_;
  std::optional<Fit> best_;
  std::int64_t work_ = 0;
};

}  // namespace

Result<MscclExport> exportForMsccl(const ScheduleFlags& flags, const ScheduleJob& job) {
  auto asked = msccl::exportSchedule(*job.schedule);
  if (asked.ok()) return MscclExport{std::move(*asked), ""};
  if (asked.status().code() != Code::kUnsupported || !job.remake || !job.segments) {
    return asked.status();
  }
  Search search(flags, job);
  std::optional<Fit> fit = search.find();
  if (!fit) return asked.status();
  const std::string segments =
      fmt::format("{} segment{}", fit->segments, fit->segments == 1 ? "" : "s");
  const bool asGiven = fit->elements == dataOf(*job.schedule);
  if (!flags.sizeGiven || asGiven) {
    return MscclExport{std::move(fit->algo),
                       fmt::format("{} and {} chunks, which MSCCL has room for; a file of MSCCL is "
                                   "for every size",
                                   segments, fit->algo.chunks)};
  }
  const auto elementSize = reduction::sizeOf(*reduction::dataTypeFromName(flags.dtype));
  const std::int64_t elements = search.nearest(*fit, dataOf(*job.schedule));
  return errorf(Code::kUnsupported,
                "{}. '--size {} --segments {}' fits, and so does no --size at all",
                asked.status().message(), elements * elementSize, fit->segments);
}

}  // namespace faultline::cli
