#include <fmt/format.h>

#include <memory>

#include "harness/scenario/sweep.h"
#include "harness/workload/collective/job/collective_job.h"
#include "harness/workload/data.h"
#include "harness/workload/job_kind.h"

namespace faultline::workload {
namespace {

std::unique_ptr<Job> makeSweep(const RankConfig& config) {
  return makeCollectiveJob(config.workload, config.rank, config.size);
}

void checkCells(const RankConfig& config, const JobKind::Fail& fail) {
  for (const scenario::SweepCell& cell : cellsOf(config.workload.collective)) {
    if (!scenario::reduces(cell.operation)) continue;
    if (config.size <= maxExactRanks(cell.dtype, cell.op)) continue;
    fail("size", fmt::format("is out of range for an exact {} of {}", reduction::nameOf(cell.op),
                             reduction::nameOf(cell.dtype)));
  }
}

}  // namespace

extern const JobKind kCollectiveJob;
constinit const JobKind kCollectiveJob{.make = makeSweep, .check = checkCells};

}  // namespace faultline::workload
