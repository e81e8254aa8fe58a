#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "injector/faults/probe_order.h"
#include "injector/netlink/link_target.h"
#include "injector/netlink/packet_socket.h"

namespace faultline::injector {

/// Numbered probe frames of bulk class from one interface to another one, and which of them came
/// late.
class OrderProbe {
 public:
  /// `frames` of them are judged, and are late when they come behind a later one after `delay`.
  static Result<OrderProbe> open(const netlink::LinkEnd& sender, const netlink::LinkEnd& listener,
                                 int frames, Duration delay);

  /// Begins anew over the same sockets.
  void restart();

  /// Sends some, and takes what has come.
  Status step(TimePoint now);

  /// Whether all has been sent, and none has come for longer than one can be delayed.
  bool done() const;

  const ProbeOrder& order() const { return order_; }
  /// Between two looks, on average: so exact are the times.
  Duration between() const;

 private:
  using Frame = std::array<std::uint32_t, 2>;  // mark and number

  OrderProbe(netlink::PacketSocket sender, netlink::PacketSocket listener, int frames,
             Duration delay)
      : sender_(std::move(sender)),
        listener_(std::move(listener)),
        frames_(frames),
        delay_(delay),
        order_(frames, delay) {}

  bool allSent() const;

  netlink::PacketSocket sender_;
  netlink::PacketSocket listener_;
  int frames_;
  Duration delay_;
  std::uint32_t mark_ = 0;
  ProbeOrder order_;
  int stepped_ = 0;
  TimePoint looked_{};
  TimePoint heard_{};
};

}  // namespace faultline::injector
