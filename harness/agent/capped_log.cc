#include "harness/agent/capped_log.h"

#include <fmt/format.h>

#include <algorithm>

namespace faultline::agent {

std::string_view CappedLog::add(std::string_view bytes) {
  std::size_t passed = 0;
  for (; passed < bytes.size() && left_ > 0; ++passed) {
    const std::size_t cost = bytes[passed] == '\n' ? 1 + kLineCost : 1;
    left_ -= std::min(left_, cost);
  }
  const std::string_view rest = bytes.substr(passed);
  behind_ += rest.size();
  end_ += rest.substr(rest.size() - std::min(rest.size(), kEnd));
  if (end_.size() > 2 * kEnd) end_.erase(0, end_.size() - kEnd);
  return bytes.substr(0, passed);
}

std::string CappedLog::rest() const {
  std::string_view kept = end_;
  // Lines that cost more than they have bytes are fewer here, too.
  std::size_t cost = 0;
  std::size_t size = 0;
  while (size < kept.size() && cost < kEnd) {
    ++size;
    cost += kept[kept.size() - size] == '\n' ? 1 + kLineCost : 1;
  }
  kept.remove_prefix(kept.size() - size);
  if (kept.size() == behind_) return std::string(kept);
  return fmt::format("\n[{} bytes are left out here]\n{}", behind_ - kept.size(), kept);
}

}  // namespace faultline::agent
