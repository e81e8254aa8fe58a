#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace faultline::fabric {

/// What the fabrics of two processes tell each other through their link (Link::sendNote).
struct Note {
  enum class Kind : std::uint32_t {
    kAddress = 1,   ///< the sender's NIC of `rail` has the IPv4 address `value` now; `detail`
                    ///< counts the changes, because notes may overtake each other
    kQuestion = 2,  ///< does process `value` answer you over `rail`?
    kAnswer = 3,    ///< `detail` (channel::Reach) is what process `value` does over `rail`
    kWord = 4,      ///< not a Note: behind it, what the clients of the fabrics tell each other
  };

  /// In place of a rail, in questions and answers: over any path.
  static constexpr std::uint32_t kAnyPath = 0xffffffff;

  Kind kind{};
  std::uint32_t rail = 0;
  std::uint32_t value = 0;
  std::uint32_t detail = 0;

  /// Nothing when the length is not that of a note.
  static std::optional<Note> parse(std::span<const std::byte> bytes) {
    Note note;
    if (bytes.size() != sizeof(note)) return std::nullopt;
    std::memcpy(&note, bytes.data(), sizeof(note));
    return note;
  }

  /// The clients' word, when it is one.
  static std::optional<std::span<const std::byte>> wordOf(std::span<const std::byte> bytes) {
    Kind kind{};
    if (bytes.size() < sizeof(kind)) return std::nullopt;
    std::memcpy(&kind, bytes.data(), sizeof(kind));
    if (kind != Kind::kWord) return std::nullopt;
    return bytes.subspan(sizeof(kind));
  }
};

}  // namespace faultline::fabric
