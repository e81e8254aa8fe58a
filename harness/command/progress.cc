#include "harness/command/progress.h"

#include <charconv>

namespace faultline::command {

Result<std::vector<int>> ProgressLines::read(std::string_view fromOffset) {
  std::vector<int> iterations;
  for (const std::string_view line : lines_.in(fromOffset)) {
    int iteration = 0;
    const auto [behind, error] = std::from_chars(line.data(), line.data() + line.size(), iteration);
    if (error != std::errc() || behind != line.data() + line.size() || iteration < 0) {
      return errorf(Code::kInvalidArgument, "'{}' is no number of an iteration",
                    line.substr(0, 60));
    }
    iterations.push_back(iteration);
  }
  return iterations;
}

}  // namespace faultline::command
