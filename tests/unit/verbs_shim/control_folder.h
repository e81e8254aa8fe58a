#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/unique_fd.h"
#include "injector/verbs/address.h"
#include "tests/unit/verbs_shim/child.h"
#include "tests/unit/verbs_shim/shim_fixture.h"

namespace faultline::testing {

inline sockaddr_un addressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  return address;
}

inline bool connects(int fd, const std::string& path) {
  const sockaddr_un address = addressOf(path);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

inline UniqueFd newSocket(int flags = 0) {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
}

inline std::string ownPath(const std::string& folder) {
  return injector::verbs::socketPath(folder, ::getpid(), injector::verbs::pidNamespaceOf("self"));
}

/// What has been written into a pipe.
inline std::string allOf(const UniqueFd& pipe) {
  std::array<char, 1024> text{};
  const ssize_t size = ::read(pipe.get(), text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

/// Children that open a device listen in a folder of their own.
class ControlStartTest : public ShimTest {
 protected:
  void SetUp() override {
    ShimTest::SetUp();
    std::string name = "/tmp/faultline-shim-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ::setenv(injector::verbs::kFolderVariable, folder_.c_str(), 1);  // children begin there
  }
  void TearDown() override {
    ::unsetenv(injector::verbs::kFolderVariable);
    std::filesystem::remove_all(folder_);
    ShimTest::TearDown();
  }

  std::string folder_;
};

}  // namespace faultline::testing
