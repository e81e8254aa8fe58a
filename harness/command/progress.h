#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace faultline::command {

/// Follows a progress file: lines with the number of the iteration that the program is in. The
/// program may append a line for each, or write the file anew. Pure: somebody else reads the file.
class ProgressLines {
 public:
  /// At most so much of the file is looked at in one step.
  static constexpr std::size_t kStep = 4096;

  /// From where of the file the next step wants to see it: the last line that is known, so that a
  /// file that was written anew is told from one that has grown.
  std::int64_t offset() const { return offset_; }

  /// What stands there now; returns the iterations that are new, in order. A line counts when it is
  /// ended. An error when one is no number.
  Result<std::vector<int>> read(std::string_view from_offset);

 private:
  std::int64_t offset_ = 0;
  std::string last_;  // line at `offset_`, with its end
};

}  // namespace faultline::command
