#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

/// How programs that are not ours tell that they made a communicator anew. Where the files are read
/// is nobody's business here.
namespace faultline::command {

/// A line that a process appended to its recovery file.
struct RecoveryEvent {
  enum class Kind {
    kFailed,   ///< `failed`: a collective has failed, the communicator is given up
    kRebuilt,  ///< `rebuilt N`: it is a rank of a new communicator of N
    kLeft,     ///< `left`: it is in no communicator any more
  };
  Kind kind = Kind::kFailed;
  int ranks = 0;  ///< of kRebuilt
  bool operator==(const RecoveryEvent&) const = default;
};

/// Follows a recovery file, to which lines are only appended.
class RecoveryLines {
 public:
  /// From where of the file the next step wants to see it.
  std::int64_t offset() const { return offset_; }
  /// What stands there now; returns what is new, in order. A line counts when it is ended.
  /// kInvalidArgument when one is none of these.
  Result<std::vector<RecoveryEvent>> read(std::string_view fromOffset);

 private:
  std::int64_t offset_ = 0;
};

/// Puts together what all processes tell: a rebuilding begins with the first that `failed`, and is
/// over when all that are left have `rebuilt`.
class Rebuildings {
 public:
  /// `mayLose`: fewer may go on than there were.
  Rebuildings(int processes, bool mayLose)
      : states_(static_cast<std::size_t>(processes)), mayLose_(mayLose) {}

  bool mayLose() const { return mayLose_; }

  struct Rebuilding {
    TimePoint noticed{};       ///< the first `failed`
    TimePoint resumed{};       ///< the last `rebuilt`
    int ranks = 0;             ///< of the new communicator
    std::vector<int> missing;  ///< processes that are in it no more
  };

  /// A process has told that. Returns the rebuilding that is over with it.
  std::optional<Rebuilding> told(int rank, const RecoveryEvent& event, TimePoint when);
  /// A process has ended. Likewise.
  std::optional<Rebuilding> ended(int rank, TimePoint when);

  /// Why what was told does not fit together, or is not all; empty: it does. For when all have
  /// ended.
  std::string problem() const;

 private:
  enum class State { kWorking, kFailed, kRebuilt, kLeft, kEnded };
  struct Process {
    State state = State::kWorking;
    int ranks = 0;  // told with `rebuilt`
  };
  std::optional<Rebuilding> completed(TimePoint when);
  void wrong(std::string problem);

  std::vector<Process> states_;
  bool mayLose_;
  std::optional<TimePoint> noticed_;  // of the rebuilding that is under way
  int count_ = 0;
  std::string problem_;  // the first
};

}  // namespace faultline::command
