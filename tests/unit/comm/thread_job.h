#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "resilient_ccl/comm/communicator.h"
#include "tests/support/free_port.h"

namespace faultline::comm {

// A job of threads over loopback: every rank has its own fabric, sockets and progress thread.

inline constexpr std::uint32_t kLoopback = 0x7f000001;

inline CommunicatorOptions optionsOf(int rank, int size, std::uint16_t port) {
  CommunicatorOptions options;
  options.rank = rank;
  options.size = size;
  options.rendezvous = {kLoopback, port};
  options.fabric.nics.assign(2, {.device = "", .address = kLoopback});
  options.fabric.managementAddress = kLoopback;
  static const auth::JobKey key = auth::JobKey::random();
  options.fabric.jobKey = key;
  return options;
}

/// Runs `body` as each rank of a job of `size`.
inline void runJob(
    int size, const std::function<void(Communicator&)>& body,
    const std::function<void(CommunicatorOptions&)>& choose = [](auto&) {}) {
  const std::uint16_t port = freePort();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      CommunicatorOptions options = optionsOf(rank, size, port);
      choose(options);
      auto comm = Communicator::create(options);
      ASSERT_TRUE(comm.ok()) << comm.status().message();
      body(**comm);
    });
  }
  for (auto& thread : ranks) thread.join();
}

}  // namespace faultline::comm
