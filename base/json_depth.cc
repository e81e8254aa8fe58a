#include "base/json_depth.h"

#include <algorithm>

namespace faultline {

Status checkJsonDepth(std::string_view text) {
  std::size_t level = 0;
  bool inString = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        inString = false;
      }
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++level <= kMostJsonLevels) continue;
      const std::string_view before = text.substr(0, i);
      const std::size_t lineBegin = before.rfind('\n') + 1;  // npos + 1 is 0
      return errorf(Code::kInvalidArgument,
                    "line {}, column {}: nested deeper than {} levels of lists and objects",
                    std::ranges::count(before, '\n') + 1, i - lineBegin + 1, kMostJsonLevels);
    } else if ((c == ']' || c == '}') && level > 0) {
      --level;
    }
  }
  return okStatus();
}

}  // namespace faultline
