#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {

/// What a schedule computes. S elements of data per rank, p ranks; `Schedule::root`. A *block* is
/// one of p nearly equal parts of the data (`split`).
enum class Collective : std::uint8_t {
  kAllReduce,      ///< all ranks end with the reduction of all data
  kReduceScatter,  ///< rank i ends with the reduction of block i; the rest is scratch
  kAllGather,      ///< rank i starts with block i; all end with all blocks
  kBroadcast,      ///< all end with the root's data
  kReduce,         ///< the root ends with the reduction of all data; the rest is scratch
  kAllToAll,       ///< block i of rank j's output is block j of rank i's input
  kSendRecv,       ///< rank i's output is rank i-1's input, as in a shift along a ring
};

inline constexpr std::array kAllCollectives{Collective::kAllReduce, Collective::kReduceScatter,
                                            Collective::kAllGather, Collective::kBroadcast,
                                            Collective::kReduce,    Collective::kAllToAll,
                                            Collective::kSendRecv};

/// "all_reduce", "reduce_scatter", ...
std::string_view collectiveName(Collective collective);
/// The reverse; nullopt for an unknown name.
std::optional<Collective> collectiveFromName(std::string_view name);

/// kAllToAll and kSendRecv have an output apart from their input: the buffer of their schedules is
/// twice the data, input first. All others work in place.
inline bool hasOutput(Collective collective) {
  return collective == Collective::kAllToAll || collective == Collective::kSendRecv;
}

/// kReduceScatter, kAllGather and kAllToAll name a block of each rank: what they promise has
/// borders inside the data.
inline bool hasBlocks(Collective collective) {
  return collective == Collective::kReduceScatter || collective == Collective::kAllGather ||
         collective == Collective::kAllToAll;
}

/// The elements of a schedule's buffer for S elements of data, and back.
inline std::int64_t bufferElements(Collective collective, std::int64_t data) {
  return hasOutput(collective) ? 2 * data : data;
}
inline std::int64_t dataElements(Collective collective, std::int64_t buffer) {
  return hasOutput(collective) ? buffer / 2 : buffer;
}

}  // namespace faultline::schedule
