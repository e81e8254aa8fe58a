#pragma once

#include <memory>

#include "harness/control/job.h"

namespace faultline::run {

/// Ranks of ours, and what a strategy does when they hang or give up: restart, shrink, exclude.
std::unique_ptr<Job> makeRankJob(RunParts& run);

}  // namespace faultline::run
