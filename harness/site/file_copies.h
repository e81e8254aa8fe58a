#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::site {

/// Files here that get what those of a node's programs have (wire::JobWrote). Each is made when the
/// node has it.
class FileCopies {
 public:
  /// Where they are to be, absolute.
  explicit FileCopies(const std::vector<std::string>& paths);

  /// Appends to one, which the first time is made, or emptied. An error when there is no such
  /// number, a link is there, or the disk is full.
  Status append(int file, std::string_view bytes);

 private:
  struct File {
    std::string path;
    UniqueFd fd{};
  };
  std::vector<File> files_;
};

}  // namespace faultline::site
