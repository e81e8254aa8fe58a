#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "injector/netlink/link_target.h"
#include "injector/netlink/packet_socket.h"

namespace faultline::injector {

/// What has become of the probes of a CheckedProbe.
struct CheckedCounts {
  int intact = 0;
  int wrong_checksum = 0;  ///< changed, and their checksum says so: a receiver drops them
  int believed = 0;        ///< changed, and their checksum is right
};

/// A datagram with known content (IPv4 and UDP) whose checksum is computed, and what arrives of it.
/// Pure.
class CheckedDatagram {
 public:
  static constexpr std::size_t kPayload = 64;
  static constexpr std::size_t kBytes = 20 + 8 + kPayload;
  using Packet = std::array<std::uint8_t, kBytes>;
  /// `mark` is in the header, which nothing changes.
  static Packet make(std::uint16_t mark);
  /// Counts a packet that arrived; one with another mark, or another length, is not ours.
  static void count(const Packet& packet, std::size_t size, std::uint16_t mark,
                    CheckedCounts& counts);
};

/// Broadcasts such datagrams on one interface and looks at what passes another one. No program gets
/// them: their address is one of those for benchmarks (RFC 2544), which nobody has.
class CheckedProbe {
 public:
  /// Where the listener sees packets: as they leave its interface, or as the kernel takes them in
  /// behind all filters.
  enum class Listening { kLeaving, kTakenIn };
  static Result<CheckedProbe> open(const netlink::LinkEnd& sender, const netlink::LinkEnd& listener,
                                   Listening listening, int packets);

  /// Begins anew over the same sockets.
  Status restart();
  /// Sends some of what has not been sent yet, and looks at what has come.
  Status step();

  bool allSent() const { return sent_ == packets_; }
  int sent() const { return sent_; }
  const CheckedCounts& counts() const { return counts_; }

 private:
  CheckedProbe(netlink::PacketSocket sender, netlink::PacketSocket listener, int packets)
      : sender_(std::move(sender)), listener_(std::move(listener)), packets_(packets) {}

  netlink::PacketSocket sender_;
  netlink::PacketSocket listener_;
  int packets_;
  int sent_ = 0;
  std::uint16_t mark_ = 0;
  CheckedCounts counts_;
};

}  // namespace faultline::injector
