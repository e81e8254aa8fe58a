#include "tests/support/process_tree.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "base/file_text.h"
#include "injector/netlink/namespace.h"

namespace faultline::test {
namespace {

namespace fs = std::filesystem;

struct Stat {
  char state = 'X';
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;
};

/// proc(5): pid (name) state ppid ... starttime is the 22nd field. The name may hold anything.
std::optional<Stat> readStat(pid_t pid) {
  const std::string text = fileText(fmt::format("/proc/{}/stat", pid));
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  Stat stat;
  fields >> stat.state >> stat.parent;
  constexpr int kFieldsBetween = 22 - 4 - 1;
  std::string skipped;
  for (int field = 0; field < kFieldsBetween; ++field) fields >> skipped;
  fields >> stat.start_ticks;
  return fields ? std::optional(stat) : std::nullopt;
}

std::vector<std::string> namespaceLinks(pid_t pid) {
  std::vector<std::string> links{fmt::format("/proc/{}/ns/net", pid)};
  std::error_code ignored;  // the process may end at any moment
  for (fs::directory_iterator entry(fmt::format("/proc/{}/fd", pid), ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    const std::string target = fs::read_symlink(entry->path(), ignored).string();
    if (target.starts_with("net:[")) links.push_back(entry->path().string());
  }
  return links;
}

}  // namespace

std::vector<ProcessId> processTree(pid_t root) {
  std::multimap<pid_t, ProcessId> children;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = static_cast<pid_t>(std::stol(name));
    if (const auto stat = readStat(pid)) children.insert({stat->parent, {pid, stat->start_ticks}});
  }
  std::vector<ProcessId> tree;
  if (const auto stat = readStat(root)) tree.push_back({root, stat->start_ticks});
  for (std::size_t index = 0; index < tree.size(); ++index) {
    const auto [first, last] = children.equal_range(tree[index].pid);
    for (auto child = first; child != last; ++child) tree.push_back(child->second);
  }
  return tree;
}

bool isGone(const ProcessId& process) {
  const auto stat = readStat(process.pid);
  return !stat || stat->start_ticks != process.start_ticks || stat->state == 'Z' ||
         stat->state == 'X';
}

std::vector<UniqueFd> networkNamespacesOf(const std::vector<ProcessId>& processes) {
  std::vector<UniqueFd> found;
  std::set<std::uint64_t> seen;
  if (const auto own = netlink::currentNamespace(); own.ok()) {
    if (const auto id = netlink::namespaceId(own->get()); id.ok()) seen.insert(*id);
  }
  for (const ProcessId& process : processes) {
    for (const std::string& link : namespaceLinks(process.pid)) {
      UniqueFd fd(::open(link.c_str(), O_RDONLY | O_CLOEXEC));
      if (!fd) continue;
      const auto id = netlink::namespaceId(fd.get());
      if (id.ok() && seen.insert(*id).second) found.push_back(std::move(fd));
    }
  }
  return found;
}

}  // namespace faultline::test
