#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "harness/site/rdma_vm/guest_setup.h"

namespace faultline::rdma_vm {

/// What is known of a rail since a fault struck it from outside the guest.
struct RailView {
  std::optional<wire::RailState> seen;  ///< by the guest; nothing before its first answer
  Duration silent{};                    ///< how long the switch has got nothing from the host
  Duration unserved{};                  ///< and how long it has sent nothing to it
  std::uint64_t arrived = 0;            ///< frames of the host at the switch
  std::uint64_t dropped = 0;            ///< frames from and to the host, there
};

/// The guest's NIC has a carrier, and its RDMA port is active.
bool isWhole(const wire::RailState& state);

// What proves a fault. Pure.

/// The cable is out.
bool isPulled(const RailView& view);
/// The switch drops what the host sends, and what is sent to it.
bool isCutOff(const RailView& view);

}  // namespace faultline::rdma_vm
