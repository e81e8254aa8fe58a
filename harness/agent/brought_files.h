#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/new_lines.h"
#include "base/status.h"
#include "wire/agent.h"

namespace faultline::agent {

/// Looks again and again into the files of a job that are to come to the controller, and says what
/// is new. The programs own them: one may be missing, be no file, or be another one than before.
class BroughtFiles {
 public:
  explicit BroughtFiles(const std::vector<wire::BroughtFile>& files);

  /// `file`: its place in the list; no bytes: it is there. Errors are look()'s.
  using Wrote = std::function<Status(int file, std::string_view bytes)>;

  /// When it is to be looked again; the end of time where there are no files.
  TimePoint due() const { return due_; }
  /// What is new by now; of a file that grows fast only a part.
  Status look(const Wrote& wrote);
  /// All that is new, and files that come at the end. For when nobody writes any more, or to have
  /// everything before what is told next. `over`: the job is.
  Status lookAtAll(bool over, const Wrote& wrote);

 private:
  struct File {
    std::string path;
    wire::Bringing how;
    std::int64_t offset = 0;  // how much has been told
    NewLines lines{};
    bool told = false;  // that it is there
  };
  Status lookAt(int index, bool all, const Wrote& wrote);
  Result<bool> step(int index, const Wrote& wrote);

  std::vector<File> files_;
  std::string buffer_;
  TimePoint due_ = TimePoint::max();
  TimePoint growingDue_{};
};

}  // namespace faultline::agent
