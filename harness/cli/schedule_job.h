#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::cli {

/// Operations that `show` prints of a lane unless told otherwise.
constexpr std::int64_t kShownOps = 200;
/// The flags of `faultline schedule`, as typed.
struct ScheduleFlags {
  std::string algorithm;
  std::string import;  ///< file; instead of an algorithm
  static constexpr int kNotGiven = std::numeric_limits<int>::min();
  int ranks = kNotGiven;
  std::vector<std::string> stragglers;
  std::optional<int> segments;
  /// Not given: whether the schedule is made with as many as the model calls best, or with one
  /// unless messages cost something.
  bool bestSegments = false;
  int window = 0;
  int ranksPerNode = 1;
  double insideBandwidth = 0;
  int rails = 0;
  std::vector<std::string> lostRails;
  bool rerank = false;
  std::string size = "64MiB";
  bool sizeGiven = false;
  std::string portModel;  ///< empty: both
  std::string shares = "fluid";
  std::string alpha = "0";
  std::string perMessage = "0";
  std::string bandwidth;
  std::string dtype = "f32";
  int onlyRank = -1;
  int onlyLane = -1;
  std::int64_t maxOps = kShownOps;
  std::string format = "text";
  bool asJson = false;
};

/// A rank with a part of its bandwidth left.
struct Straggler {
  int rank = 0;
  double send = 1;
  double receive = 1;
};

/// The flags understood.
struct ScheduleJob {
  std::unique_ptr<schedule::Schedule> schedule;
  std::vector<Straggler> stragglers;
  schedule::PortBandwidths bandwidths;
  /// What a rank gives, or gets: where blocks must be equal (AllToAll) rounded up to that.
  Bytes size = 0;
  /// That the algorithm was asked for; nullopt of a schedule from a file, which does not tell.
  std::optional<int> segments;
  bool segmentsChosen = false;  ///< by the model
  /// The same with another number of elements and of segments; empty where neither can be chosen.
  std::function<Result<std::unique_ptr<schedule::Schedule>>(std::int64_t elements, int segments)>
      remake;
  /// For each of `portModels`; its own is the first of them.
  schedule::CostOptions cost;
  std::vector<schedule::PortModel> portModels;
};

/// Makes the schedule that the flags ask for. kInvalidArgument, with the flag, for a request that
/// makes no sense; kNotFound for an unknown algorithm, or a file that cannot be read.
Result<ScheduleJob> understand(ScheduleFlags flags);

}  // namespace faultline::cli
