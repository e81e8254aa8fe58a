#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "harness/command/progress.h"
#include "harness/command/recovery.h"

namespace faultline::run {

/// What stands in a file from there on, at most one step of it, in `buffer`; nullopt when it is not
/// there, or cannot be read. Never waits.
std::optional<std::string_view> readStep(const std::string& path, std::int64_t offset,
                                         std::string& buffer);

/// Looks into files to which the processes of a command write, as often as it is asked. `Lines`
/// knows what a file may have: command::ProgressLines, command::RecoveryLines.
template <typename Lines>
class ToldFiles {
 public:
  /// By rank; an empty path: this process writes none.
  explicit ToldFiles(std::vector<std::string> paths) {
    for (std::string& path : paths) files_.push_back({std::move(path), {}});
  }

  /// Hands out everything that is new, as `told(rank, what)`. A file that is not there yet is no
  /// error; one that cannot be understood is, and names the file.
  template <typename Told>
  Status look(const Told& told) {
    for (std::size_t rank = 0; rank < files_.size(); ++rank) {
      File& file = files_[rank];
      if (file.path.empty()) continue;
      const auto text = readStep(file.path, file.lines.offset(), buffer_);
      if (!text) continue;
      auto all = file.lines.read(*text);
      if (!all.ok()) return all.status().withContext(file.path);
      for (const auto& what : *all) told(static_cast<int>(rank), what);
    }
    return okStatus();
  }

 private:
  struct File {
    std::string path;
    Lines lines;
  };
  std::vector<File> files_;
  std::string buffer_;
};

using ProgressFiles = ToldFiles<command::ProgressLines>;
using RecoveryFiles = ToldFiles<command::RecoveryLines>;

}  // namespace faultline::run
