#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/parameter.h"
#include "base/status.h"
#include "base/units.h"
#include "resilient_ccl/auth/job_key.h"
#include "resilient_ccl/channel/link_io.h"

namespace faultline::nccl {

/// What users choose about the plugin, by environment variables.
struct Options {
  std::vector<std::string> nics;  ///< empty: by NCCL's own variables
  std::string management;         ///< interface; empty: see `chooseManagement`
  channel::Policy policy = channel::Policy::kPull;
  Bytes chunkBytes = 0;
  Bytes smallMessage = 0;
  Duration giveUp{};
  Duration railGrace{};
  Duration holdOff{};
  int ioThreads = kAutomatic;
  /// Made from FAULTLINE_KEY; nothing: none is set. `describe` does not tell it.
  std::optional<auth::JobKey> jobKey;
  std::string counters;  ///< file; empty: none
  std::string trace;     ///< the same
  /// NCCL_SOCKET_IFNAME without blanks; empty also where it has one character: NCCL takes that for
  /// not set.
  std::string socketInterfaces;

  /// What a link has of `giveUp`, from when it is found to have no rail left. The rest, a fifth of
  /// it and 2 s at most, is for what comes before and after: to notice it, and for NCCL to abort,
  /// which took more than the 1.5 s that nccl_bench waits for it (docs/gpu.md).
  Duration linkBudget() const { return giveUp - std::min<Duration>(giveUp / 5, 2s); }

  static constexpr int kAutomatic = -1;

  /// The value of a variable; nothing when it is not set.
  using Environment = std::function<std::optional<std::string>(const std::string& name)>;
  /// kInvalidArgument names the variable and what it may be.
  static Result<Options> read(const Environment& environment);
  static Result<Options> readProcess();

  /// "FAULTLINE_NICS=none FAULTLINE_NET_STRATEGY=balance FAULTLINE_CHUNK=64KiB ...": all of them,
  /// for the log.
  std::string describe() const;
};

/// The value of a variable of this process.
std::optional<std::string> processEnvironment(const std::string& name);

/// FAULTLINE_IO_THREADS as it is when nobody sets it: a quarter of the processors that the process
/// may use, as other ranks and NCCL's own threads want some, and two for each rail at most, as a
/// ring has a peer on either side.
int automaticIoThreads(int processors, int rails);

/// Of the names of variables those that are none of the plugin's and were likely meant to be one:
/// "FAULTLINE_NIC is no option of the plugin (did you mean FAULTLINE_NICS?)". Names that begin with
/// FAULTLINE_, are like none of the options and unknown to all other parts of Faultline come last,
/// in one sentence.
std::vector<std::string> likelyMistakes(std::span<const std::string> variables);
/// The names of all variables of this process.
std::vector<std::string> environmentNames();

/// One row for each variable: docs/nccl.md has them as a table.
std::span<const ParameterSpec> optionSpecs();

}  // namespace faultline::nccl
