#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "base/clock.h"
#include "tests/support/net_driver.h"

// Each clause of NCCL's network interface, in each of its versions: the plugin is loaded and called
// as NCCL's proxy does. Both ends of a connection are in this process, over loopback; the plugin
// does not know.

namespace faultline::test {

constexpr int kTag = 3;
constexpr Duration kLong = 20s;

class ConformanceTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    setenv("FAULTLINE_NICS", "lo", 1);
    setenv("FAULTLINE_MANAGEMENT", "lo", 1);
    ASSERT_EQ(net.error(), "");
    ASSERT_EQ(net.init(), NetResult::kSuccess);
  }
  void TearDown() override { EXPECT_EQ(net.finalize(), NetResult::kSuccess); }

  void* send(void* connection, const void* data, std::size_t size, int tag = kTag) {
    void* request = nullptr;
    EXPECT_EQ(net.isend(connection, data, size, tag, &request), NetResult::kSuccess);
    return request;
  }
  /// What irecv finds where it writes its request.
  enum class Completion { kWanted, kOptional };
  void* receive(void* connection, void* data, std::size_t size, int tag = kTag,
                Completion completion = Completion::kWanted) {
    void* request = reinterpret_cast<void*>(completion == Completion::kOptional ? 1 : 0);
    EXPECT_EQ(net.irecv(connection, std::span(&data, 1), std::span(&size, 1), std::span(&tag, 1),
                        &request),
              NetResult::kSuccess);
    return request;
  }
  /// Tests until the request is done; its size, -1: never, -2: an error.
  int await(void* request, Duration time = kLong) {
    const TimePoint deadline = now() + time;
    std::array<int, nccl::kNetMaxRequests> sizes{};
    while (now() < deadline) {
      int done = 0;
      if (net.test(request, &done, sizes.data()) != NetResult::kSuccess) return -2;
      if (done != 0) return sizes[0];
    }
    return -1;
  }
  void close(const Ends& ends) {
    EXPECT_EQ(net.closeSend(ends.send), NetResult::kSuccess);
    EXPECT_EQ(net.closeRecv(ends.receive), NetResult::kSuccess);
  }

  NetDriver net{FAULTLINE_NET_PLUGIN, GetParam()};
};

inline std::string versionName(const ::testing::TestParamInfo<int>& version) {
  return "v" + std::to_string(version.param);
}

/// What the plugin's thread may be writing: to ask the plugin would be to poll it.
__attribute__((no_sanitize("thread"))) inline std::int64_t peek(
    const volatile std::int64_t& value) {
  return value;
}

}  // namespace faultline::test
