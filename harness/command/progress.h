#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/new_lines.h"
#include "base/status.h"

namespace faultline::command {

/// Follows a progress file: lines with the number of the iteration that the program is in. Pure:
/// somebody else reads the file.
class ProgressLines {
 public:
  static constexpr std::size_t kStep = NewLines::kStep;

  std::int64_t offset() const { return lines_.offset(); }

  /// What stands from `offset()` on now; returns the iterations that are new, in order. An error
  /// when a line is no number.
  Result<std::vector<int>> read(std::string_view fromOffset);

 private:
  NewLines lines_;
};

}  // namespace faultline::command
