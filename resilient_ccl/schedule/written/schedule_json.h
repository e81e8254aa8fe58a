#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "resilient_ccl/schedule/schedule.h"

/// Schedules as JSON: what `faultline schedule show --json` prints. Unlike MSCCL XML it has all
/// that a schedule can say, and no limits but those of memory.
namespace faultline::schedule {

/// What is said of the whole: algorithm, collective, ranks, elements of data; its root and its
/// layers where it has them.
nlohmann::json headAsJson(const Schedule& schedule);

/// One lane of one rank; at most `maxOps` operations of it, < 0: all.
nlohmann::json laneAsJson(const Schedule& schedule, int rank, int lane, std::int64_t maxOps);

/// A schedule as it was read, in units of its chunks.
struct JsonSchedule {
  std::unique_ptr<Schedule> inChunks;
  std::int64_t chunks = 0;  ///< of data: the largest unit that all pieces are made of
};

/// Reads what the functions above write; other keys of the head are for people. kInvalidArgument
/// with the line of the text, or with rank, lane and operation, and what is wrong: also where
/// operations were left out. Every peer, wait and piece is in its range.
Result<JsonSchedule> scheduleFromJson(std::string_view text);

/// The same schedule for `dataElements` of data: chunk i begins where the i-th of `chunks` nearly
/// equal parts does. A collective with an output of its own rounds the data up to whole chunks.
std::unique_ptr<Schedule> scaled(const JsonSchedule& schedule, std::int64_t dataElements);

}  // namespace faultline::schedule
