#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace faultline::workload {

/// What a rank needs to go on after a restart.
struct Checkpoint {
  std::uint64_t iteration = 0;  ///< the first iteration that is still to be done
  std::uint32_t rank = 0;
  std::vector<std::byte> state;
};

/// Writes a checkpoint to `path`, really: a temporary file beside it (`path`.tmp) is written,
/// synced and renamed, and the directory synced, so that after a crash at any moment `path` is the
/// old checkpoint or the new one. On an error the old one is untouched and the temporary file is
/// removed; a full disk is reported with the space needed and left.
Status saveCheckpoint(const std::string& path, std::uint64_t iteration, std::uint32_t rank,
                      std::span<const std::byte> state);

/// Reads a checkpoint of this rank back. kNotFound when there is none; kInvalidArgument, with what
/// is wrong, when the file is no checkpoint, is cut short or too long, comes from another version
/// or another rank, or does not match its checksum.
Result<Checkpoint> loadCheckpoint(const std::string& path, std::uint32_t rank);

}  // namespace faultline::workload
