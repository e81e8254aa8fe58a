#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "base/unique_fd.h"

namespace faultline::transport {

/// Two ends of a stream.
inline std::array<UniqueFd, 2> connectedPair() {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace faultline::transport
