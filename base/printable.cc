#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace faultline {
namespace {

/// The code point of a sequence of UTF-8.
std::uint32_t codePoint(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return lead;
  std::uint32_t code = lead & (0x7fU >> sequence.size());
  for (const char c : sequence.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  }
  return code;
}

/// Where a character begins, at `at` or before.
std::size_t beginOfCharacter(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

/// Without its middle when it is longer than `longest`.
std::string withoutMiddle(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  const std::size_t front = beginOfCharacter(text, longest / 2);
  const std::size_t back = beginOfCharacter(text, text.size() - longest / 4);
  return fmt::format("{}...({} bytes)...{}", text.substr(0, front), text.size(), text.substr(back));
}

}  // namespace

std::size_t utf8Length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
      (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

bool isCommand(std::string_view text, std::size_t length) {
  const std::uint32_t code = codePoint(text.substr(0, length));
  if (code < 0x20) return code != '\t' && code != '\n' && code != '\r';
  return (code >= 0x7f && code <= 0x9f) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8Length(text);
    if (length == 0 || (length == 1 && (isCommand(text, 1) || text[0] == '\r'))) {
      safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    if (isCommand(text, length)) {
      safe += fmt::format("\\u{:04x}", codePoint(text.substr(0, length)));
    } else {
      safe += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return safe;
}

std::string printableMessage(std::string_view text) {
  constexpr std::size_t kLongestWord = 400, kLongestMessage = 8000;
  constexpr std::string_view kBlanks = " \t\n\r";
  std::string message;
  while (!text.empty()) {
    const std::size_t word = std::min(text.find_first_of(kBlanks), text.size());
    message += withoutMiddle(text.substr(0, word), kLongestWord);
    const std::size_t next = std::min(text.find_first_not_of(kBlanks, word), text.size());
    message += withoutMiddle(text.substr(word, next - word), kLongestWord);
    text.remove_prefix(next);
  }
  return printable(withoutMiddle(message, kLongestMessage));
}

std::string printableJson(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  while (!json.empty()) {
    const std::size_t length = utf8Length(json);
    if (length > 0 && isCommand(json, length)) {  // outside of strings there is none
      safe += fmt::format("\\u{:04x}", codePoint(json.substr(0, length)));
    } else {
      safe += json.substr(0, length == 0 ? 1 : length);
    }
    json.remove_prefix(length == 0 ? 1 : length);
  }
  return safe;
}

}  // namespace faultline
