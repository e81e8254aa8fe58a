#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "resilient_ccl/auth/job_key.h"
#include "resilient_ccl/nccl/net_api.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::nccl {

/// A process among all that may ever meet: 128 random bits.
struct ProcessId {
  std::array<std::byte, 16> bytes{};

  static ProcessId random();
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

/// What NCCL carries from a process that listens to the one that will connect: 128 bytes, of which
/// the last are zero.
struct Handle {
  /// Where the process is met, over the management network.
  transport::tcp::Endpoint rendezvous;
  ProcessId process;
  /// Proves that one has been given this handle; the older half of the key of two processes.
  auth::JobKey token;
  /// Which of the process's listeners.
  std::uint64_t listener = 0;
  /// "host:pid (address)", for messages; what is longer than kLongestName is cut off.
  std::string name;

  static constexpr std::size_t kLongestName = 55;

  void write(std::span<std::byte, kNetHandleBytes> to) const;
  /// kInvalidArgument: not written by this plugin, or by another version of it.
  static Result<Handle> read(std::span<const std::byte, kNetHandleBytes> from);
};

/// "host:pid (address)" in at most kLongestName bytes. Of a longer host's name the beginning and
/// the end are there, by which the hosts of one job differ: "pytorchjob-ll..-70b-worker-12:4194304
/// (192.168.100.200)".
std::string nameOfProcess(std::string_view host, int process, std::string_view address);

}  // namespace faultline::nccl
