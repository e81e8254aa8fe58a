#pragma once

#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// Ring AllReduce of one piece in one lane: reduce-scatter, then all-gather (Patarasuk and Yuan
/// 2009). The piece is split into as many chunks as there are ranks; chunk c is summed along the
/// positions c, c+1, ... of the ring and then passed on unchanged.
///
/// Receives and sends alternate (R0 S0 R1 S1 ...); send t forwards what receive t-1 brought and
/// waits for all of it. Positions count along the ring from 0; so do the peers of operations.
struct RingLane {
  int ranks = 1;
  Piece part;
  /// Of each chunk only this one of so many parts: what is left when several lanes share the
  /// chunks.
  int cuts = 1;
  int cut = 0;

  /// Of the ring: ranks-1 steps of the reduce-scatter and as many of the all-gather.
  std::int64_t steps() const { return 2 * (static_cast<std::int64_t>(ranks) - 1); }
  std::int64_t opCount() const { return part.count == 0 ? 0 : 2 * steps(); }
  Op op(int position, int lane, std::int64_t index) const;
  /// Chunk `number` modulo the number of ranks; number > -2 * ranks.
  Piece chunk(std::int64_t number) const;

  /// The receives and sends, as indices, after which a position does not touch a chunk any more;
  /// -1 where there is none. 0 <= chunk < ranks.
  std::int64_t lastReceiveOf(int position, std::int64_t chunk) const;
  std::int64_t lastSendOf(int position, std::int64_t chunk) const;
};

}  // namespace faultline::schedule
