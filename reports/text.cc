#include "reports/text.h"

#include "base/printable.h"

namespace faultline::reports {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// U+FFFE and U+FFFF, which XML 1.0 forbids.
bool isNoncharacter(std::string_view text) {
  return text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
}

}  // namespace

std::string cleanText(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8Length(text);
    if (length == 0 || isCommand(text, length) || isNoncharacter(text)) {
      clean += kReplacement;
      text.remove_prefix(length == 0 ? 1 : length);
    } else {
      clean += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return clean;
}

}  // namespace faultline::reports
