#include "harness/site/log_lines.h"

#include <algorithm>

#include "base/printable.h"

namespace faultline::site {

void LogLines::take(std::string_view text) {
  const std::size_t fits = std::min(text.size(), kLongest - begun_.size());
  begun_ += text.substr(0, fits);
  cut_ = cut_ || fits < text.size();
}

std::string LogLines::line() {
  std::string made = origin_ + printable(begun_) + (cut_ ? " ...\n" : "\n");
  begun_.clear();
  cut_ = false;
  return made;
}

std::string LogLines::add(std::string_view text) {
  std::string lines;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;) {
    take(text.substr(0, end));
    lines += line();
    text.remove_prefix(end + 1);
  }
  take(text);
  return lines;
}

std::string LogLines::end() { return begun_.empty() ? "" : line(); }

}  // namespace faultline::site
