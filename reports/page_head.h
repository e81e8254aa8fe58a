#pragma once

#include <cstdint>
#include <string>

namespace faultline::reports {

enum class PageScripts : std::uint8_t {
  kNone,
  kInline,  ///< those that the page itself contains
};

/// What every page of ours begins with, up to its body: it loads nothing, from anywhere, has our
/// styles, and runs no other scripts than these. `title` is any text.
std::string pageHead(const std::string& title, PageScripts scripts);

}  // namespace faultline::reports
