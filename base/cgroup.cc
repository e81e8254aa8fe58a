#include "base/cgroup.h"

#include <fmt/format.h>

#include <cstddef>
#include <sstream>

#include "base/file_text.h"

namespace faultline {
namespace {

void addWithParents(const std::filesystem::path& mounted, const std::filesystem::path& path,
                    std::vector<std::filesystem::path>& groups) {
  groups.push_back(mounted);
  std::filesystem::path group = mounted;
  for (const std::filesystem::path& part : path.relative_path()) {
    group /= part;
    groups.push_back(group);
  }
}

}  // namespace

std::vector<std::filesystem::path> ownCgroups(std::string_view controller,
                                              const std::string& root) {
  std::vector<std::filesystem::path> groups;
  const std::filesystem::path mounted = root + "/sys/fs/cgroup";
  std::istringstream lines(fileText(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {  // "0::/path", "4:cpu,cpuacct:/path"
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") addWithParents(mounted, path, groups);
    if (controllers.find(fmt::format(",{},", controller)) != std::string::npos) {
      addWithParents(mounted / controller, path, groups);
    }
  }
  return groups;
}

std::optional<double> cgroupNumber(const std::filesystem::path& file) {
  std::istringstream words(fileText(file.string()));
  double number = 0;
  return words >> number ? std::optional(number) : std::nullopt;
}

}  // namespace faultline
