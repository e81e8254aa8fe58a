#include "resilient_ccl/schedule/algorithms.h"

#include <array>
#include <string>

#include "resilient_ccl/schedule/optcc_all_reduce.h"
#include "resilient_ccl/schedule/ring_all_reduce.h"

namespace faultline::schedule {
namespace {

constexpr std::array kAlgorithms{
    Algorithm{"ring", "ring AllReduce; each segment is a ring of its own over its part",
              [](const ScheduleRequest& request) {
                return ringAllReduce(request.ranks, request.elements, request.segments);
              }},
    Algorithm{
        "optcc", "AllReduce at the lower bound with slow ranks: cyclic shift, owners by share",
        [](const ScheduleRequest& request) {
          return optccAllReduce(request.ranks, request.elements, request.segments, request.window,
                                ownerShares(request.ranks, request.bandwidths, request.shares));
        }},
};

std::string knownNames() {
  std::string names;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (!names.empty()) names += ", ";
    names += algorithm.name;
  }
  return names;
}

Status check(const std::vector<double>& bandwidths, int ranks) {
  if (!bandwidths.empty() && bandwidths.size() != static_cast<std::size_t>(ranks)) {
    return errorf(Code::kInvalidArgument, "{} bandwidths given for {} ranks", bandwidths.size(),
                  ranks);
  }
  for (std::size_t rank = 0; rank < bandwidths.size(); ++rank) {
    if (!(bandwidths[rank] > 0 && bandwidths[rank] <= 1)) {
      return errorf(Code::kInvalidArgument,
                    "bandwidth of rank {} must be above 0 and at most 1, not {}; a rank without "
                    "any path cannot take part",
                    rank, bandwidths[rank]);
    }
  }
  return okStatus();
}

Status check(const ScheduleRequest& request) {
  if (request.ranks < 1) {
    return errorf(Code::kInvalidArgument, "a schedule needs at least 1 rank, not {}",
                  request.ranks);
  }
  if (request.elements < 0) {
    return errorf(Code::kInvalidArgument, "a schedule cannot move {} elements", request.elements);
  }
  if (request.segments < 1) {
    return errorf(Code::kInvalidArgument, "a schedule needs at least 1 segment, not {}",
                  request.segments);
  }
  if (request.window < 0) {
    return errorf(Code::kInvalidArgument, "a window cannot have {} receives", request.window);
  }
  RETURN_IF_ERROR(check(request.bandwidths.send, request.ranks));
  return check(request.bandwidths.receive, request.ranks);
}

}  // namespace

std::span<const Algorithm> algorithms() { return kAlgorithms; }

Result<std::unique_ptr<Schedule>> makeSchedule(std::string_view algorithm,
                                               const ScheduleRequest& request) {
  RETURN_IF_ERROR(check(request));
  for (const Algorithm& candidate : kAlgorithms) {
    if (candidate.name == algorithm) return candidate.make(request);
  }
  return errorf(Code::kNotFound, "no algorithm is called '{}'; known: {}", algorithm, knownNames());
}

}  // namespace faultline::schedule
