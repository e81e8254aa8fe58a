#include "reports/markdown.h"

#include "reports/text.h"

namespace faultline::reports {
namespace {

/// Longer texts are cut: a program may have written a page on one line.
constexpr std::size_t kLongestText = 400;

/// On one line, and cut at the end of a character.
std::string shortLine(std::string_view text) {
  std::string line;
  for (const char character : cleanText(text)) {
    const bool blank =
        character == '\n' || character == '\r' || character == '\t' || character == ' ';
    if (blank && (line.empty() || line.back() == ' ')) continue;
    line += blank ? ' ' : character;
  }
  if (line.size() > kLongestText) {
    std::size_t end = kLongestText;
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
    line = line.substr(0, end) + "…";
  }
  return line;
}

/// Whether something looks like a tag of HTML: readers besides GitHub may not know code as such.
bool hasTag(const std::string& line) {
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    const char next = line[i + 1];
    const bool letter = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z');
    if (line[i] == '<' &&
        (letter || std::string_view("/!?").find(next) != std::string_view::npos)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string markdownText(std::string_view text) {
  // An empty comment takes a mention or an address apart, and is not seen.
  constexpr std::string_view kNothing = "<!-- -->";
  std::string safe;
  const std::string line = shortLine(text);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char character = line[i];
    switch (character) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '|':
        safe += "&#124;";
        break;
      case '@':
      case '#':
        safe += character;
        safe += kNothing;
        break;
      case ':':
        safe += character;
        if (line.compare(i, 3, "://") == 0) safe += kNothing;
        break;
      case '\\':
      case '`':
      case '*':
      case '_':
      case '~':
      case '[':
      case ']':
      case '!':
        safe += '\\';
        safe += character;
        break;
      default:
        safe += character;
    }
  }
  // What would begin a list, a heading or a rule at the start of a line.
  if (!safe.empty() && std::string_view("+-=").find(safe.front()) != std::string_view::npos) {
    safe.insert(safe.begin(), '\\');
  }
  return safe;
}

std::string markdownCode(std::string_view text) {
  const std::string line = shortLine(text);
  if (line.empty()) return "";
  const bool plain = line.find_first_of("`|") == std::string::npos && !hasTag(line);
  if (plain) return "`" + line + "`";
  // A backtick would end the code, and a bar the cell. HTML knows neither; Markdown between its
  // tags is told off by entities.
  std::string safe;
  for (const char character : line) {
    if (std::string_view("&<>|\\`*_~[]!@#:").find(character) != std::string_view::npos) {
      safe += "&#" + std::to_string(static_cast<int>(character)) + ";";
    } else {
      safe += character;
    }
  }
  return "<code>" + safe + "</code>";
}

std::string markdownTable(const std::vector<std::vector<std::string>>& rows,
                          const std::vector<bool>& numbers) {
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    text += '|';
    for (const std::string& cell : cells) text += " " + cell + " |";
    text += '\n';
  };
  for (const std::vector<std::string>& row : rows) {
    line(row);
    if (&row != &rows.front()) continue;
    std::vector<std::string> rule;
    for (std::size_t i = 0; i < row.size(); ++i) {
      rule.emplace_back(i < numbers.size() && numbers[i] ? "---:" : "---");
    }
    line(rule);
  }
  return text;
}

std::string bounded(std::string text) {
  constexpr std::size_t kMost = 60'000;  // GitHub takes 65536 characters in a comment
  if (text.size() <= kMost) return text;
  text.resize(text.rfind('\n', kMost) + 1);
  return text + "\nCut here: the whole is in the files of the result.\n";
}

}  // namespace faultline::reports
