#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace faultline::comm {

/// What the engines of two processes tell each other over their fabrics (Fabric::tell).
struct EngineWord {
  enum class Kind : std::uint32_t {
    kGoodbye = 1,   ///< the sender has called `finish` and needs nothing any more
    kRollCall = 2,  ///< how many collectives of communicator `about` has the receiver begun?
    kPresent = 3,   ///< the answer: `number` of them
  };

  std::uint32_t communicator = 0;  ///< of no communicator: those have numbers from 1 on
  Kind kind{};
  std::uint64_t number = 0;
  std::uint32_t about = 0;
  std::uint32_t reserved = 0;

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(this, 1)); }
  /// Nothing when it is another word.
  static std::optional<EngineWord> parse(std::span<const std::byte> bytes) {
    EngineWord word;
    if (bytes.size() != sizeof(word)) return std::nullopt;
    std::memcpy(&word, bytes.data(), sizeof(word));
    if (word.communicator != 0) return std::nullopt;
    return word;
  }
};
static_assert(sizeof(EngineWord) == 24);

}  // namespace faultline::comm
