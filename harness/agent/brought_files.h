#pragma once

#include <cstdint>
#include <deque>
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
  /// From now on bringSome() brings what stands there at this moment, and files that come at the
  /// end if the job is `over`. For when nobody writes any more, or to have it all before what is
  /// told next.
  void beginAll(bool over);
  /// A part of that; whether it was the last one.
  Result<bool> bringSome(const Wrote& wrote);
  /// Files with so many lines that the rest does not come. Each is named once.
  std::vector<std::string> takeCut();

 private:
  struct File {
    std::string path;
    wire::Bringing how;
    std::int64_t brought = 0;  // bytes
    NewLines lines{};
    bool told = false;  // that it is there
    bool toldCut = false;
  };
  /// Of a file, what is still to be brought.
  struct Part {
    int file = 0;
    std::int64_t left = 0;  // bytes: somebody may write faster than we read
    bool another = false;   // it was seen to be another one: once, for the same reason
  };
  struct Step {
    std::int64_t bytes = 0;
    bool another = false;  // the next one begins anew
  };
  static std::int64_t offsetOf(const File& file);
  Result<Step> step(int index, const Wrote& wrote);

  std::vector<File> files_;
  std::deque<Part> pass_;
  std::string buffer_;
  TimePoint due_ = TimePoint::max();
  TimePoint growingDue_{};
};

}  // namespace faultline::agent
