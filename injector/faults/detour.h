#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/netlink/link_target.h"
#include "injector/netlink/packet_program.h"

namespace faultline::injector {

/// A way of packets around the switch's port that takes a given time. They go into one end of a
/// veth pair of its own, wait in this process, and come back the same way. Whole packets: what was
/// left to the NIC (segmentation, checksums) still is.
class Detour {
 public:
  /// Of the packets that pass `port` in this way. Nothing goes in until they are diverted.
  static Result<std::unique_ptr<Detour>> make(const netlink::LinkEnd& port,
                                              netlink::Passing passing);
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;
  ~Detour();

  /// The program for the port that sends a share of the packets (0 to 1) in here. What has been
  /// here passes.
  netlink::PacketProgram divert(double share) const;

  /// Nothing may be on its way through it any more.
  Status close();

  /// Takes what has come, and sends back what came before `due`.
  Status step(TimePoint now, TimePoint due);

  bool empty() const { return held_.empty(); }

  /// Packets that found no room, since it was asked last.
  Result<std::int64_t> lost();

 private:
  struct Held {
    TimePoint since;
    std::vector<char> packet;
  };

  Detour(const netlink::LinkEnd& port, netlink::Passing passing) : port_(port), passing_(passing) {}

  bool received() const { return passing_ == netlink::Passing::kReceived; }
  int entrance() const;
  int farEnd() const { return entrance() + 1; }
  Status open();
  Status openSocket();

  netlink::LinkEnd port_;
  netlink::Passing passing_;
  bool made_ = false;
  UniqueFd fd_;
  std::vector<char> frame_;
  std::deque<Held> held_;
};

}  // namespace faultline::injector
