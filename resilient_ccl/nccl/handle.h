#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "resilient_ccl/auth/job_key.h"
#include "resilient_ccl/auth/key_agreement.h"
#include "resilient_ccl/nccl/net_api.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::nccl {

/// Of handles, and of all that processes say to each other.
inline constexpr std::uint32_t kProtocolVersion = 3;

/// A process among all that may ever meet: the fingerprint of its public key. Nobody else can show
/// that it has that key.
struct ProcessId {
  std::array<std::byte, 16> bytes{};

  static ProcessId of(const auth::PublicKey& key) { return {auth::fingerprint(key)}; }
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

/// What NCCL carries from a process that listens to the one that will connect: 128 bytes, of which
/// the last are zero.
struct Handle {
  /// Where the process is met, over the management network.
  transport::tcp::Endpoint rendezvous;
  ProcessId process;
  /// Known to who has been given this handle: part of what a caller proves (`Meeting`).
  auth::JobKey token;
  /// Which of the process's listeners.
  std::uint64_t listener = 0;
  /// "host:pid (address)", for messages; what is longer than kLongestName is cut off.
  std::string name;
  /// The node of the process (`fabric::hostIdentity`) as a number; 0: not known.
  std::uint64_t node = 0;

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
