#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "resilient_ccl/nccl/call.h"
#include "resilient_ccl/nccl/pair.h"

namespace faultline::nccl {

/// NCCL's connects that are under way, each known by a number, as NCCL asks for its outcome again
/// and again; or, when it has given up, never again. Not thread-safe.
class Attempts {
 public:
  struct Attempt {
    std::optional<Call> call{};    ///< nothing: it has been answered, or has failed
    std::string peer{};            ///< for messages
    std::shared_ptr<Pair> pair{};  ///< nothing: it has failed
    std::uint32_t connection = 0;
    int device = 0;
    TimePoint asked{};  ///< about by NCCL last, or when it had its outcome
    Status failure = okStatus();
  };

  /// Its number, never 0.
  std::uint64_t add(Attempt attempt);
  /// Null: not yet. An attempt ends with its connection, or with an error.
  Result<std::unique_ptr<Connection>> finish(std::uint64_t number, TimePoint now);

  /// Adds what has to be waited for now.
  void waitFor(std::vector<pollfd>& waits) const;
  /// Goes on with all calls, closes those that have an outcome, and forgets the outcomes that
  /// nobody has asked for.
  void advance(TimePoint now);
  std::size_t size() const { return attempts_.size(); }
  /// Answers that were not proved, of all calls.
  std::uint64_t refused() const { return refused_; }

  /// An outcome that nobody has asked for since is forgotten after so long: long enough for
  /// whoever may still ask, as what is kept is small.
  static constexpr Duration kRemembered = 10min;

 private:
  Result<bool> converse(Attempt& attempt, TimePoint now);

  std::map<std::uint64_t, Attempt> attempts_;
  std::uint64_t numbers_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace faultline::nccl
