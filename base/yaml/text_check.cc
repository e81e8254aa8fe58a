#include "base/yaml/text_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"

namespace faultline::yaml {
namespace {

bool isControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f;
}

bool isBreak(char c) { return c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

std::optional<Problem> checkText(std::string_view text, int source, const Wanted& wanted) {
  if (text.size() > wanted.mostBytes) {
    return Problem{{source, 1, 1},
                   fmt::format("{} bytes are too many: a {} has at most {}", text.size(),
                               wanted.what, wanted.mostBytes)};
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Problem{{source, 1, 1}, fmt::format("there is nothing in it: see {}", wanted.help)};
  }
  Location where{source, 1, 1};
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8Length(text.substr(i));
    if (length == 0 || isControl(text[i])) {
      return Problem{where, fmt::format("byte 0x{:02x} is not text: a {} is YAML in UTF-8",
                                        static_cast<unsigned char>(text[i]), wanted.what)};
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
    const std::size_t length = utf8Length(text.substr(i));
    const std::string_view rest = text.substr(i);
    const bool shown = length > 0 && !isCommand(rest, length) && !isBreak(text[i]);
    const std::string_view next =
        shown ? text.substr(i, length) : std::string_view(length == 0 ? "?" : " ");
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

}  // namespace faultline::yaml
