#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace faultline {

/// Follows a file of lines that somebody else writes: a line may be appended, or the file be
/// written anew for each. Pure: somebody else reads the file.
class NewLines {
 public:
  /// At most so much of the file is looked at in one step.
  static constexpr std::size_t kStep = 4096;

  /// From where of the file the next step wants to see it: the last line that is known, so that a
  /// file that was written anew is told from one that has grown.
  std::int64_t offset() const { return offset_; }

  /// The lines that are new, in order and without their ends. A line counts when it is ended. They
  /// live as long as `fromOffset`, which is what stands there now.
  std::vector<std::string_view> in(std::string_view fromOffset);
  /// Whether the last step has seen another file than the one before: the next one begins anew.
  bool another() const { return another_; }

 private:
  std::int64_t offset_ = 0;
  std::string last_;  // line at `offset_`, with its end
  bool another_ = false;
};

}  // namespace faultline
