#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "resilient_ccl/fabric/fabric.h"

namespace faultline::comm {

/// What the planners of a communicator's ranks tell each other over their fabrics (Fabric::tell).
/// Longer than any EngineWord.
struct PlanWord {
  enum class Kind : std::uint32_t {
    /// To the coordinator: what the sender has seen; `number` counts them, `detail` is its live
    /// share, the only entry how fast its port was.
    kObserved = 16,
    /// To all: proposal `number` of a health vector with hash `hash`; `entries` are those of ranks
    /// `first` and on.
    kHealth,
    /// To the coordinator: the sender has planned for proposal `number`.
    kReady,
    /// plan::ChangeMessage: kind `first`, change `detail`, operation `number`, plan `hash`.
    kChange,
    /// To the coordinator: under the health with hash `detail` the sender does operation
    /// `number`, the first of its size, by the plan with hash `hash`.
    kPlan,
    /// To all: everybody does so.
    kAgreed,
    /// To all: proposal `number`, with hash `hash`: what is in use, but that AllReduces of `detail`
    /// elements of `first` bytes use what the two entries say (Chosen): algorithm and segments, and
    /// whether for a try.
    kChoice,
    /// To all: round `first` of the test of ports with this number, with shift `detail`.
    kTestRound,
    /// To the coordinator: it is over for the sender; the path to it carried the share `detail` of
    /// a whole port, 0: not known. Round 0: all operations before the test are done.
    kTestAnswer,
    /// To all: the test is over.
    kTestOver,
  };
  /// In parts of plan::Health::kWhole; or Chosen.
  struct Entry {
    std::uint16_t send = 0;
    std::uint16_t receive = 0;
  };
  static constexpr std::size_t kMostEntries = 36;

  std::uint32_t communicator = 0;  ///< of no communicator, as EngineWord
  Kind kind{};
  std::uint32_t about = 0;  ///< the communicator
  std::uint32_t first = 0;
  std::uint64_t number = 0;
  std::uint64_t hash = 0;
  std::uint64_t detail = 0;
  std::uint32_t count = 0;  ///< of entries
  std::array<Entry, kMostEntries> entries{};

  std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(this, 1))
        .first(offsetof(PlanWord, entries) + count * sizeof(Entry));
  }
  /// Nothing when it is another word.
  static std::optional<PlanWord> parse(std::span<const std::byte> bytes) {
    PlanWord word;
    constexpr std::size_t kHead = offsetof(PlanWord, entries);
    if (bytes.size() < kHead || bytes.size() > sizeof(word)) return std::nullopt;
    std::memcpy(&word, bytes.data(), bytes.size());
    const bool known = word.kind >= Kind::kObserved && word.kind <= Kind::kTestOver;
    if (word.communicator != 0 || !known || word.count > kMostEntries ||
        bytes.size() != kHead + word.count * sizeof(Entry)) {
      return std::nullopt;
    }
    return word;
  }
};
static_assert(sizeof(PlanWord) <= fabric::Fabric::kLongestWord);

}  // namespace faultline::comm
