#include "harness/command/progress.h"

#include <charconv>

namespace faultline::command {

Result<std::vector<int>> ProgressLines::read(std::string_view text) {
  if (!text.starts_with(last_)) {  // another file, or the same one written anew
    offset_ = 0;
    last_.clear();
    return std::vector<int>();
  }
  std::vector<int> iterations;
  text.remove_prefix(last_.size());
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    int iteration = 0;
    const auto [behind, error] = std::from_chars(line.data(), line.data() + line.size(), iteration);
    if (error != std::errc() || behind != line.data() + line.size() || iteration < 0) {
      return errorf(Code::kInvalidArgument, "'{}' is no number of an iteration",
                    line.substr(0, 60));
    }
    iterations.push_back(iteration);
    offset_ += static_cast<std::int64_t>(last_.size());
    last_ = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
  }
  return iterations;
}

}  // namespace faultline::command
