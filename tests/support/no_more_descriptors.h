#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::test {

/// The least limit of descriptors that there may be, for as long as it lives: nobody gets one more.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    // A sanitizer needs a descriptor to look at a type that it meets for the first time.
    EXPECT_FALSE(Status::fromErrno(EMFILE, "have words of errors at hand").ok());
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const UniqueFd next(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next.get());
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoMoreDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace faultline::test
