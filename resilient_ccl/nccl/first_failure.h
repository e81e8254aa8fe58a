#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "resilient_ccl/fabric/fabric.h"

// Why a process ends its calls, and how its peers hear of it. In a ring most ranks have no link to
// the one that is lost: what they see is that a neighbour closes its connections.

namespace faultline::nccl {

/// Of a process: what its calls have failed by. Its own failure ("host:process (address): no rail
/// to ...") or, where that came from a peer, the peer's. Thread-safe; nobody is called from inside.
class FirstFailure {
 public:
  enum class Kind {
    kCause,        ///< seen by this process, or told by a peer
    kConsequence,  ///< a peer has ended something, and has not said why
  };
  /// Of several within kMemory the first cause stays, or, without one, the first: the others are
  /// mostly its consequences.
  void note(const std::string& why, Kind kind, TimePoint now);

  /// Changes with each failure that is kept; 0: none yet.
  std::uint32_t number() const { return number_.load(std::memory_order_acquire); }
  struct Kept {
    std::uint32_t number = 0;
    std::string why;
  };
  Kept kept() const;

  /// What comes later has a cause of its own: that of a job which went on with a new communicator.
  static constexpr Duration kMemory = 1min;

 private:
  mutable std::mutex mutex_;
  std::atomic<std::uint32_t> number_{0};
  std::string why_;
  Kind kind_ = Kind::kConsequence;
  TimePoint when_{};
};

/// The words (Fabric::tell) that carry a failure to a peer. A failure that names all rails is
/// longer than a word; what is longer than kMostParts of them is cut.
struct FailureWord {
  static constexpr std::uint32_t kMagic = 0x3a796877;  // "why:"
  static constexpr int kMostParts = 4;

  std::uint32_t magic = kMagic;
  std::uint32_t number = 0;  ///< of the failure: parts of two do not mix
  std::uint8_t part = 0, parts = 0;
  std::array<std::uint8_t, 2> reserved{};
  // Behind it: text.
};
std::vector<std::vector<std::byte>> wordsOf(const FirstFailure::Kept& failure);
inline constexpr std::size_t kFailureTextOfWord =
    fabric::Fabric::kLongestWord - sizeof(FailureWord);

/// A peer's failure, as its words come, in any order. The peer chooses every byte of them.
class HeardFailure {
 public:
  /// Whether the failure is there as a whole with this word. What is no such word changes nothing.
  bool take(std::span<const std::byte> word, TimePoint now);
  /// Printable, and at most as long as kMostParts words have room for; empty: none has come within
  /// FirstFailure::kMemory.
  std::string_view why(TimePoint now) const;
  /// When it came.
  TimePoint when() const { return when_; }

 private:
  std::uint32_t number_ = 0;
  int count_ = 0;
  std::array<std::string, FailureWord::kMostParts> parts_;
  std::string why_;
  TimePoint when_{};
};

}  // namespace faultline::nccl
