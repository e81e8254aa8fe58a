#include "harness/faultd/caller.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

#include "base/file_text.h"
#include "injector/safety/journal.h"

namespace faultline::faultd {
namespace {

constexpr std::string_view kJobFolder = "job_";

std::vector<std::string> foldersOf(const std::string& path) {
  std::vector<std::string> folders;
  std::istringstream parts(path);
  for (std::string one; std::getline(parts, one, '/');) folders.push_back(one);
  return folders;
}

bool isNumber(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

/// "job_17"
bool isNumbered(const std::string& folder, std::string_view prefix) {
  return folder.starts_with(prefix) && isNumber(std::string_view(folder).substr(prefix.size()));
}

std::string userName(uid_t uid) {
  const passwd* const user = ::getpwuid(uid);
  return user != nullptr ? user->pw_name : fmt::format("{}", uid);
}

/// Whether the process has the interfaces that this one has.
Status requireSameNetwork(pid_t pid) {
  struct stat own = {};
  struct stat its = {};
  const std::string path = fmt::format("/proc/{}/ns/net", pid);
  if (::stat("/proc/self/ns/net", &own) != 0) {
    return Status::fromErrno(errno, "look at the own network namespace");
  }
  if (::stat(path.c_str(), &its) != 0) {
    return errorf(Code::kPermissionDenied,
                  "process {} that asks has ended, or the fault service may not look at it (it "
                  "needs CAP_SYS_PTRACE)",
                  pid);
  }
  if (own.st_ino == its.st_ino && own.st_dev == its.st_dev) return okStatus();
  return errorf(Code::kPermissionDenied,
                "process {} that asks is in another network namespace (a container?), whose "
                "interfaces are not those of the fault service",
                pid);
}

}  // namespace

std::string jobOfCgroups(std::string_view text) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    // "7:freezer:/slurm/uid_1000/job_17/step_0", "0::/system.slice/slurmstepd.scope/job_17/...";
    // the name of a folder may have a ':' as well.
    const std::size_t controllers = line.find(':');
    const std::size_t path =
        controllers == std::string::npos ? controllers : line.find(':', controllers + 1);
    if (path == std::string::npos) continue;
    const std::vector<std::string> folders = foldersOf(line.substr(path + 1));
    if (folders.size() < 4 || !folders[0].empty()) continue;
    const bool first = folders[1].starts_with("slurm") && isNumbered(folders[2], "uid_");
    const bool second = folders[1] == "system.slice" && folders[2].ends_with("slurmstepd.scope");
    if ((first || second) && isNumbered(folders[3], kJobFolder)) {
      return "job " + folders[3].substr(kJobFolder.size());
    }
  }
  return "";
}

Result<strike::Asker> askerOf(const launch::LocalPeer& peer, std::uint64_t started) {
  RETURN_IF_ERROR(requireSameNetwork(peer.pid));
  strike::Asker asker{.user = userName(peer.uid), .process = peer.pid};
  asker.job = jobOfCgroups(fileText(fmt::format("/proc/{}/cgroup", peer.pid)));
  // After all that was read of it: another one may have its number by then.
  if (started == 0 || safety::holderOf(peer.pid).started != started) {
    return errorf(Code::kPermissionDenied, "process {} that asks has ended", peer.pid);
  }
  if (asker.job.empty()) asker.job = "user " + asker.user;
  asker.caller = {.uid = peer.uid, .user = asker.user, .groups = {}};
  for (const gid_t gid : peer.groups) {
    const group* const found = ::getgrgid(gid);
    if (found != nullptr) asker.caller->groups.emplace_back(found->gr_name);
  }
  return asker;
}

}  // namespace faultline::faultd
