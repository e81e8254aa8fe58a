#include "base/standard_descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace faultline {
namespace {

bool isOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

int exitOfChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST(StandardDescriptorsTest, NoSocketGetsTheNumberOfAClosedOne) {
  for (const int closed : {0, 1, 2}) {
    EXPECT_EQ(exitOfChild([closed] {
                ::close(closed);
                {
                  const StandardDescriptors standard;
                  if (::socket(AF_INET, SOCK_DGRAM, 0) <= STDERR_FILENO) return 1;
                  if (!isOpen(closed)) return 2;
                }
                return isOpen(closed) ? 3 : 0;
              }),
              0)
        << closed;
  }
}

TEST(StandardDescriptorsTest, WhatTheProgramHasPutThereMeanwhileStays) {
  EXPECT_EQ(exitOfChild([] {
              ::close(2);
              {
                const StandardDescriptors standard;
                ::dup2(::open("/dev/zero", O_RDWR), 2);
              }
              return isOpen(2) && isOpen(0) && isOpen(1) ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace faultline
