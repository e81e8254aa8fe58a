#include "reports/text.h"

#include <cstdint>

namespace faultline::reports {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Bytes of the well-formed sequence at the start of `text`, or 0 (Unicode 15, table 3-7).
std::size_t sequenceLength(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const std::uint8_t second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool beyond = lead == 0xF4 && second > 0x8F;
  const bool noncharacter = lead == 0xEF && second == 0xBF && byte(2) >= 0xBE;
  return overlong || surrogate || beyond || noncharacter ? 0 : length;
}

bool forbidden(char character) {
  const auto code = static_cast<std::uint8_t>(character);
  return (code < 0x20 && code != '\t' && code != '\n' && code != '\r') || code == 0x7F;
}

}  // namespace

std::string cleanText(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequenceLength(text);
    if (length == 0 || (length == 1 && forbidden(text[0]))) {
      clean += kReplacement;
      text.remove_prefix(1);
    } else {
      clean += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return clean;
}

}  // namespace faultline::reports
