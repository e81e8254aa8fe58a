#pragma once

#include <unistd.h>

#include <cstdint>

#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline {

/// A TCP port on loopback that nobody uses, and that no other test takes meanwhile: below those
/// that the system hands out by itself (net.ipv4.ip_local_port_range begins at 32768), and each
/// process looks in another place.
inline std::uint16_t freePort() {
  constexpr std::uint32_t kLoopback = 0x7f000001;
  constexpr int kFirst = 10'000, kCount = 20'000, kStep = 61;
  static int next = static_cast<int>(static_cast<std::int64_t>(getpid()) * kStep % kCount);
  for (int tries = 0; tries < kCount; ++tries) {
    const auto port = static_cast<std::uint16_t>(kFirst + next++ % kCount);
    if (transport::tcp::openListener({kLoopback, "", 0}, port).ok()) return port;
  }
  return 0;
}

}  // namespace faultline
