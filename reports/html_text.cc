#include "reports/html_text.h"

#include <fmt/format.h>

#include "reports/text.h"

namespace faultline::reports {

std::string escapedForHtml(const std::string& text) {
  std::string safe;
  for (const char character : cleanText(text)) {
    switch (character) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += character;
    }
  }
  return safe;
}

/// '<' would let "</script>" or "<!--" in user text end the script element; the others make it
/// safe in any part of a page.
std::string escapedForScript(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size() + text.size() / 8);
  for (const char character : text) {
    if (character == '<' || character == '>' || character == '&') {
      safe += fmt::format("\\u{:04x}", static_cast<unsigned>(character));
    } else {
      safe += character;
    }
  }
  return safe;
}

std::string filled(std::string_view page, const std::map<std::string, std::string_view>& values) {
  std::string text;
  while (true) {
    const std::size_t open = page.find("{{");
    const std::size_t close = page.find("}}", open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    text += page.substr(0, open);
    const auto value = values.find(std::string(page.substr(open + 2, close - open - 2)));
    if (value != values.end()) text += value->second;
    page.remove_prefix(close + 2);
  }
  return text += page;
}

}  // namespace faultline::reports
