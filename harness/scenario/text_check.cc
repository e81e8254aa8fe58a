#include "harness/scenario/text_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/scenario/reader.h"

namespace faultline::scenario {
namespace {

/// Bytes of the UTF-8 sequence at the beginning of `text`, 0 when it is none (RFC 3629: no overlong
/// forms, no surrogates, nothing above U+10FFFF).
std::size_t sequenceLength(std::string_view text) {
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

bool isControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f;
}

bool isBreak(char c) { return c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

std::optional<Problem> checkText(std::string_view text, int source) {
  if (text.size() > kMaximumFileBytes) {
    return Problem{{source, 1, 1},
                   fmt::format("{} bytes are too many: a scenario has at most {}", text.size(),
                               kMaximumFileBytes)};
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Problem{{source, 1, 1}, "there is nothing in it: see 'faultline describe scenario'"};
  }
  Location where{source, 1, 1};
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequenceLength(text.substr(i));
    if (length == 0 || isControl(text[i])) {
      return Problem{where, fmt::format("byte 0x{:02x} is not text: a scenario is YAML in UTF-8",
                                        static_cast<unsigned char>(text[i]))};
    }
    if (text[i] == '\n') {
      ++where.line;
      where.column = 1;
    } else {
      ++where.column;
    }
    i += length;
  }
  return std::nullopt;
}

std::string oneLine(std::string_view text, std::size_t longest) {
  std::string line;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequenceLength(text.substr(i));
    const bool printable = length > 0 && (length > 1 || !(isControl(text[i]) || isBreak(text[i])));
    const std::string_view next =
        printable ? text.substr(i, length) : std::string_view(length == 0 ? "?" : " ");
    if (line.size() + next.size() > longest) return line + "...";
    line += next;
    i += std::max<std::size_t>(length, 1);
  }
  return line;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  return oneLine(text, kLongest);
}

}  // namespace faultline::scenario
