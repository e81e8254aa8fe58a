#include "wire/file_bytes.h"

#include <cstddef>
#include <optional>

namespace faultline::wire {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr unsigned kBitsPerDigit = 4;

std::optional<unsigned> valueOf(char digit) {
  const std::size_t value = kDigits.find(digit);
  if (value == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned>(value);
}

}  // namespace

std::string FileBytes::hex() const {
  std::string text;
  text.reserve(2 * data.size());
  for (const char byte : data) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> kBitsPerDigit];
    text += kDigits[value & (kDigits.size() - 1)];
  }
  return text;
}

Result<FileBytes> FileBytes::fromHex(std::string_view text) {
  FileBytes bytes;
  bytes.data.reserve(text.size() / 2);
  for (std::size_t at = 0; at + 1 < text.size(); at += 2) {
    const auto high = valueOf(text[at]), low = valueOf(text[at + 1]);
    if (!high || !low) break;
    bytes.data += static_cast<char>(*high << kBitsPerDigit | *low);
  }
  if (2 * bytes.data.size() == text.size()) return bytes;
  return errorf(Code::kInvalidArgument, "two hexadecimal digits were expected for each byte");
}

}  // namespace faultline::wire
