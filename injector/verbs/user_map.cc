#include "injector/verbs/user_map.h"

#include <cstdint>
#include <sstream>
#include <string>

namespace faultline::injector::verbs {

std::optional<uid_t> userInside(std::string_view map, uid_t outside) {
  std::istringstream lines{std::string(map)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    std::uint64_t first_inside = 0;
    std::uint64_t first_outside = 0;
    std::uint64_t count = 0;
    if (!(numbers >> first_inside >> first_outside >> count)) continue;
    if (outside < first_outside || outside - first_outside >= count) continue;
    return static_cast<uid_t>(first_inside + (outside - first_outside));
  }
  return std::nullopt;
}

}  // namespace faultline::injector::verbs
