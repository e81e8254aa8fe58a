#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"

namespace faultline::run {

/// What is left of something that a machine has, and what sets the limit, in words.
struct Room {
  double left = 0;
  std::string limit;
};

/// What this machine can hold besides what it holds now. Empty: not known, or without a limit.
struct Capacity {
  std::optional<Room> memory;             ///< bytes
  std::optional<Room> threads;            ///< processes count as one thread each
  std::optional<Room> descriptors;        ///< of one process
  std::optional<Room> files;              ///< open files of the whole machine
  std::optional<Room> networkNamespaces;  ///< of this user namespace
  std::optional<Room> processNamespaces;  ///< likewise
  int processors = 1;
};

/// Reads MemAvailable, the limits of this process's cgroups (version 1 and 2), its resource limits,
/// and the kernel's. `root`: before /proc and /sys, for tests.
Capacity readCapacity(const std::string& root = "");

}  // namespace faultline::run
