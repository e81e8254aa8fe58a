#pragma once

#include <cstdint>

#include "base/units.h"

namespace faultline::site {

/// What something takes of the machine that the bench runs on.
struct Footprint {
  std::int64_t processes = 0;
  std::int64_t threads = 0;      ///< of all of them
  std::int64_t connections = 0;  ///< between ranks, over rails
  std::int64_t descriptors = 0;  ///< of the process that needs the most
  std::int64_t files = 0;        ///< of all of them
  std::int64_t networkNamespaces = 0;
  std::int64_t processNamespaces = 0;
  Bytes memory = 0;
};

/// The controller, with its report of a short run; measured, rounded up (docs/command.md).
inline constexpr Footprint kController{
    .processes = 1, .threads = 1, .descriptors = 16, .files = 16, .memory = 16 << 20};

}  // namespace faultline::site
