#include "harness/workload/checkpoint_history.h"

#include <cerrno>
#include <cstdio>
#include <utility>

namespace faultline::workload {

CheckpointHistory::CheckpointHistory(std::string path, std::uint32_t rank)
    : path_(std::move(path)), previous_(path_ + ".previous"), rank_(rank) {}

Status CheckpointHistory::save(std::uint64_t iteration, std::span<const std::byte> state) const {
  if (std::rename(path_.c_str(), previous_.c_str()) != 0 && errno != ENOENT) {
    return Status::fromErrno(errno, "keep the checkpoint " + path_);
  }
  return saveCheckpoint(path_, iteration, rank_, state);
}

Result<Checkpoint> CheckpointHistory::newest() const {
  auto checkpoint = loadCheckpoint(path_, rank_);
  // After the renaming and before the next file was complete.
  if (checkpoint.status().code() == Code::kNotFound) return loadCheckpoint(previous_, rank_);
  return checkpoint;
}

Result<Checkpoint> CheckpointHistory::at(std::uint64_t iteration) const {
  for (const std::string& path : {path_, previous_}) {
    auto checkpoint = loadCheckpoint(path, rank_);
    if (checkpoint.ok() && checkpoint->iteration == iteration) return checkpoint;
    if (!checkpoint.ok() && checkpoint.status().code() != Code::kNotFound) return checkpoint;
  }
  return errorf(Code::kNotFound, "neither {} nor {} goes on at iteration {}", path_, previous_,
                iteration);
}

}  // namespace faultline::workload
