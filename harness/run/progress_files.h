#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "harness/command/progress.h"

namespace faultline::run {

/// Looks into the progress files of the processes of a command, as often as it is asked.
class ProgressFiles {
 public:
  /// By rank; an empty path: this process writes none.
  explicit ProgressFiles(std::vector<std::string> paths);

  /// Hands out every iteration that is new. A file that is not there yet is no error; one that
  /// cannot be understood is, and names the file.
  Status look(const std::function<void(int rank, int iteration)>& began);

 private:
  struct File {
    std::string path;
    command::ProgressLines lines;
  };
  std::vector<File> files_;
  std::string buffer_;
};

}  // namespace faultline::run
