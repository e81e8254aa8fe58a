#include "base/new_lines.h"

namespace faultline {

std::vector<std::string_view> NewLines::in(std::string_view text) {
  std::vector<std::string_view> lines;
  another_ = !text.starts_with(last_);
  if (another_) {
    offset_ = 0;
    last_.clear();
    return lines;
  }
  text.remove_prefix(last_.size());
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    offset_ += static_cast<std::int64_t>(last_.size());
    last_ = text.substr(0, end + 1);
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace faultline
