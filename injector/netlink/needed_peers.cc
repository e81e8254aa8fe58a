#include "injector/netlink/needed_peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/file_text.h"

namespace faultline::netlink {
namespace {

constexpr std::string_view kSshVariable = "SSH_CONNECTION=";
constexpr std::array<std::string_view, 5> kNetworkFileSystems{"nfs", "nfs4", "cifs", "smb3",
                                                              "smbfs"};
// More generations than a process has; /proc may change while it is read.
constexpr int kMostAncestors = 100;

std::string sshConnectionIn(const std::string& environment) {
  std::istringstream entries(environment);
  for (std::string entry; std::getline(entries, entry, '\0');) {
    if (entry.starts_with(kSshVariable)) return entry.substr(kSshVariable.size());
  }
  return "";
}

/// 0: none that is seen here.
pid_t parentOf(pid_t pid) {
  std::istringstream status(fileText(fmt::format("/proc/{}/status", pid)));
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    pid_t parent = 0;
    if (words >> key >> parent && key == "PPid:") return parent;
  }
  return 0;
}

/// Client and its port, server and its port.
std::optional<std::array<std::string, 4>> sshWords(std::string_view connection) {
  std::istringstream text{std::string(connection)};
  std::array<std::string, 4> words;
  for (std::string& word : words) {
    if (!(text >> word)) return std::nullopt;
  }
  return words;
}

void addSshClient(std::string_view connection, std::vector<NeededPeer>& peers) {
  const auto client = sshClient(connection);
  if (!client) return;
  NeededPeer peer{*client, "the client of this ssh session (SSH_CONNECTION)",
                  "the session would end, and the machine may not be reachable any more; come in "
                  "over another network, or choose another device",
                  sshServer(connection).value_or("")};
  if (std::ranges::find(peers, peer) == peers.end()) peers.push_back(std::move(peer));
}

/// The value of an option like "addr=10.0.0.1" of a mount.
std::string optionOf(const std::string& options, std::string_view name) {
  std::istringstream list(options);
  for (std::string option; std::getline(list, option, ',');) {
    if (option.starts_with(name) && option.size() > name.size() && option[name.size()] == '=') {
      return option.substr(name.size() + 1);
    }
  }
  return "";
}

/// None where there is no such folder.
std::vector<std::filesystem::path> entriesOf(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  return entries;
}

/// Of a file of sysfs; "" where there is none.
std::string firstLine(const std::filesystem::path& path) {
  const std::string text = fileText(path.string());
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::optional<std::string> sshClient(std::string_view connection) {
  const auto words = sshWords(connection);
  return words ? std::optional((*words)[0]) : std::nullopt;
}

std::optional<std::string> sshServer(std::string_view connection) {
  const auto words = sshWords(connection);
  return words ? std::optional((*words)[2]) : std::nullopt;
}

std::vector<NeededPeer> fileServers(std::string_view mounts) {
  std::vector<NeededPeer> servers;
  std::istringstream lines{std::string(mounts)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string source;
    std::string place;
    std::string type;
    std::string options;
    if (!(words >> source >> place >> type >> options)) continue;
    if (std::ranges::find(kNetworkFileSystems, type) == kNetworkFileSystems.end()) continue;
    const std::string address = optionOf(options, "addr");
    if (address.empty()) continue;
    servers.push_back({address, fmt::format("the server of {} ({})", place, type),
                       "programs that use it would hang; unmount it, or choose another device",
                       optionOf(options, "clientaddr")});
  }
  return servers;
}

std::vector<NeededPeer> blockServers(const std::string& sysfs) {
  namespace fs = std::filesystem;
  std::vector<NeededPeer> servers;
  const auto add = [&](const std::string& address, const fs::path& device,
                       const std::string& from) {
    if (address.empty()) return;
    servers.push_back({address,
                       fmt::format("the server of the block device {}", device.filename().string()),
                       "what is on it would hang; disconnect it, or choose another device", from});
  };
  for (const fs::path& one : entriesOf(sysfs + "/class/nvme")) {
    const std::string transport = firstLine(one / "transport");
    if (transport != "tcp" && transport != "rdma") continue;
    const std::string options = firstLine(one / "address");
    add(optionOf(options, "traddr"), one, optionOf(options, "src_addr"));
  }
  for (const fs::path& one : entriesOf(sysfs + "/class/iscsi_connection")) {
    std::string address = firstLine(one / "address");
    if (address.empty()) address = firstLine(one / "persistent_address");
    add(address, one, "");
  }
  return servers;
}

std::vector<NeededPeer> neededPeers(pid_t of) {
  std::vector<NeededPeer> peers;
  const char* const own = std::getenv("SSH_CONNECTION");
  if (of == 0 && own != nullptr) addSshClient(own, peers);
  pid_t pid = of == 0 ? ::getppid() : of;
  for (int generation = 0; pid > 0 && generation < kMostAncestors; ++generation) {
    addSshClient(sshConnectionIn(fileText(fmt::format("/proc/{}/environ", pid))), peers);
    pid = parentOf(pid);
  }
  const std::vector<NeededPeer> servers = fileServers(fileText("/proc/self/mounts"));
  peers.insert(peers.end(), servers.begin(), servers.end());
  const std::vector<NeededPeer> blocks = blockServers("/sys");
  peers.insert(peers.end(), blocks.begin(), blocks.end());
  return peers;
}

}  // namespace faultline::netlink
