#pragma once

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <map>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "harness/launch/process.h"
#include "tests/support/netns_fixture.h"

namespace faultline::test {

/// What `ip ... netns` takes for a namespace that this process holds.
inline std::string placeOfNamespace(int namespaceFd) {
  return fmt::format("/proc/{}/fd/{}", getpid(), namespaceFd);
}

/// Has a shell do something in a namespace; what it says is in the failure.
inline void runInNamespace(int namespaceFd, const std::string& commands,
                           std::map<std::string, std::string> environment = {}) {
  const UniqueFd said(::memfd_create("said", MFD_CLOEXEC));
  launch::SpawnOptions options;
  options.executable = "/bin/sh";
  options.arguments = {"sh", "-ec", commands};
  options.environment = std::move(environment);
  options.environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin";
  options.namespace_fd = namespaceFd;
  options.stdout_fd = options.stderr_fd = said.get();
  ASSERT_OK_AND_ASSIGN(launch::Process shell, launch::Process::spawn(options));
  ASSERT_OK_AND_ASSIGN(const launch::ExitStatus ended, shell.waitFor(30s));
  std::array<char, 1024> text{};
  (void)!::pread(said.get(), text.data(), text.size() - 1, 0);
  ASSERT_TRUE(ended.ok()) << commands << ": " << text.data();
}

}  // namespace faultline::test
