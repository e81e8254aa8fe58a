#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace faultline::channel {

/// Decides from probe answers whether a path to a peer process is dead while the peer is alive.
///
/// Probes go out in numbered rounds over all paths. A path is convicted when `kProbesToConvict`
/// probes on it stay unanswered while as many *later* probes to the same peer were answered on
/// another path, promptly: a peer that is stopped or overloaded answers nowhere, or late
/// everywhere, and convicts nothing. Pure: no clock, no socket.
class Prober {
 public:
  static constexpr int kProbesToConvict = 3;
  /// Slower answers prove nothing: a process that wakes up after a pause answers the probes that
  /// waited in its sockets path by path, and the path it reads last is not dead.
  static constexpr Duration kPromptAnswer = 10ms;

  explicit Prober(int paths);

  /// A round begins now on all paths: its number, to be sent in the probes.
  std::uint32_t beginRound(TimePoint now);

  /// The answer to the probe of `round` came back over `path`.
  void answered(int path, std::uint32_t round, TimePoint now);

  /// Forgets what was held against a path: it has shown life, or its trial begins.
  void acquit(int path);

  /// Whether `path` is dead by the rule above.
  bool convicted(int path) const { return paths_[path].laterAnswers >= kProbesToConvict; }

  /// Rounds answered on `path` in a row, up to the newest one sent (an unanswered newest round is
  /// not held against it while an answer may still be on its way).
  int answeredInARow(int path) const { return paths_[path].inARow; }

 private:
  struct Path {
    std::uint32_t lastAnswered = 0;  // highest round answered, or the last one before the trial
    std::uint32_t lastCounted = 0;   // highest answer used as proof against other paths
    int laterAnswers = 0;            // proofs against this path
    int inARow = 0;
  };

  // Send times of the latest rounds, by round modulo the size.
  static constexpr std::size_t kRemembered = 64;
  std::vector<TimePoint> sentAt_;
  std::uint32_t round_ = 0;
  std::vector<Path> paths_;
};

}  // namespace faultline::channel
