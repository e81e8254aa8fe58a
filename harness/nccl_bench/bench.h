#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "harness/nccl_bench/device.h"
#include "harness/nccl_bench/options.h"

namespace faultline::nccl_bench {

/// Exit codes of the program.
enum ExitCode : int {
  kExitOk = 0,
  kExitWrong = 1,   ///< elements were wrong
  kExitUsage = 2,   ///< a mistake in the command line
  kExitFailed = 3,  ///< a call failed, or was not done in time, or the ranks did not meet
};

/// Everybody's text, by rank: all ranks call it, and it returns when all have. It does not use what
/// is measured.
using Exchange = std::function<Result<std::vector<std::string>>(const std::string& mine)>;

/// Whether a port of this rank is down.
using LostPort = std::function<bool()>;

/// Calls all that `options` ask for, and prints the table of nccl-tests into `out` on rank 0. Times
/// are those of the slowest rank. Returns the number of wrong elements of all ranks; an error when
/// a call has failed and is not to be made again. kAborted: this rank has left; it still has to
/// take part in `exchange` until that ends, as the others' meeting goes on with it.
Result<std::int64_t> runBench(const Options& options, Device& device, const Exchange& exchange,
                              std::ostream& out, const LostPort& lostPort = {});

}  // namespace faultline::nccl_bench
