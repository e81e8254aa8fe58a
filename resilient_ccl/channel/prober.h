#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "resilient_ccl/channel/hearing.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::channel {

/// Whether a path answers.
enum class Reach : std::uint8_t {
  kUnknown,
  kAnswers,
  kSilent,  ///< rounds were answered on other paths and not on this one
};

/// Decides from probe answers whether a path to a peer process is dead while the peer is alive.
///
/// Probes go out in numbered rounds over all paths. A path is convicted when `kProbesToConvict`
/// probes on it stay unanswered while as many *later* probes to the same peer were answered on
/// another path, promptly: a peer that is stopped or overloaded answers nowhere, or late
/// everywhere, and convicts nothing.
///
/// Both ends send rounds while one of them tries a path, and each tells the other which of its
/// rounds have come in. So each knows which direction of a dead path is the dead one: what it sent
/// and the other end heard elsewhere only, or what the other end sent and it heard elsewhere only.
/// Pure: no clock, no socket.
class Prober {
 public:
  static constexpr int kProbesToConvict = 3;
  /// Slower answers prove nothing: a process that wakes up after a pause answers the probes that
  /// waited in its sockets path by path, and the path it reads last is not dead.
  static constexpr Duration kPromptAnswer = 10ms;
  /// Answers that come together are one proof: what waited in one socket of a process that wakes up
  /// comes at once, and the next socket is read after it.
  static constexpr Duration kProofsApart = 4ms;
  /// A round is lost when one that was sent so much later on the same path is answered first.
  static constexpr Duration kOrderKept = 4ms;
  static constexpr int kAnswersAfterLoss = 2;

  explicit Prober(int paths);

  /// A round begins now on all paths: its number, to be sent in the probes.
  std::uint32_t beginRound(TimePoint now);

  /// The answer to the probe of `round` came back over `path`.
  void answered(int path, std::uint32_t round, TimePoint now);

  /// When that round began; nothing when it was too long ago, or never.
  std::optional<TimePoint> sentAt(std::uint32_t round) const;

  /// The other end's probe of `round` came in over `path`.
  void heard(int path, std::uint32_t round) { heardHere_.note(path, round); }
  /// All rounds of the other end that have come in, to be sent in answers.
  const Hearing& heardHere() const { return heardHere_; }
  /// What the other end has heard of this end's rounds.
  void reported(const Hearing& heardThere);

  /// Which direction of `path` carries nothing, as far as the rounds of both ends tell.
  DeadDirection deadDirection(int path) const;

  /// Forgets what was held against a path: it has shown life, or its trial begins.
  void acquit(int path);

  /// Only answers from now on are in a row; what else is held against `path` stays.
  void countAgain(int path);

  /// Whether the newest round sent was answered on `path`.
  bool answeredNewest(int path) const { return paths_[path].lastAnswered == round_; }

  /// Whether rounds were lost on `path` since its trial began.
  bool lostRounds(int path) const { return paths_[path].lostRounds; }

  /// Whether `path` is dead by the rule above.
  bool convicted(int path) const { return paths_[path].laterAnswers >= kProbesToConvict; }

  /// The latest round sent.
  std::uint32_t round() const { return round_; }
  /// What the answers to the rounds after `after` tell of `path`.
  Reach reach(int path, std::uint32_t after) const;

  /// Rounds answered on `path` in a row since its trial began, up to the latest that was answered,
  /// however long ago that is: lastAnswer.
  int answeredInARow(int path) const { return paths_[path].inARow; }
  /// When the latest of them was; the epoch of the clock: never.
  TimePoint lastAnswer(int path) const { return paths_[path].answeredAt; }

 private:
  struct Path {
    std::uint32_t lastAnswered = 0;  // highest round answered, or the last one before the trial
    std::uint32_t lastCounted = 0;   // highest answer used as proof against other paths
    int laterAnswers = 0;            // proofs against this path
    TimePoint lastProof{};
    int inARow = 0;
    TimePoint answeredAt{};  // the latest of them
    bool lostRounds = false;
  };

  // Send times of the latest rounds, by round modulo the size.
  static constexpr std::size_t kRemembered = 64;
  std::vector<TimePoint> sentAt_;
  std::uint32_t round_ = 0;
  std::vector<Path> paths_;
  Hearing answered_;    // rounds of this end, by the path of the answer
  Hearing heardHere_;   // rounds of the other end
  Hearing heardThere_;  // rounds of this end, as the other reports
};

}  // namespace faultline::channel
