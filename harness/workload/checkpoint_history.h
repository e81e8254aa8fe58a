#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "harness/workload/checkpoint.h"

namespace faultline::workload {

/// The last two checkpoints of one rank: the newest in `path`, the one before in `path`.previous.
/// Two, because ranks that are killed while they write are one checkpoint apart; all have the older
/// one. Not thread-safe.
class CheckpointHistory {
 public:
  CheckpointHistory(std::string path, std::uint32_t rank);

  /// Errors as of saveCheckpoint; the older checkpoint stays readable after each of them.
  Status save(std::uint64_t iteration, std::span<const std::byte> state) const;

  /// kNotFound when there is none; other errors as of loadCheckpoint.
  Result<Checkpoint> newest() const;
  /// The checkpoint with this first iteration; kNotFound when neither has it.
  Result<Checkpoint> at(std::uint64_t iteration) const;

 private:
  std::string path_;
  std::string previous_;
  std::uint32_t rank_;
};

}  // namespace faultline::workload
