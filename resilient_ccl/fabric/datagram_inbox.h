#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace faultline::fabric {

/// Reads what waits in a UDP socket of control, and gives each datagram to `take`: a few batches,
/// so that others get their turn. A larger datagram than there can be comes cut.
void readDatagrams(int fd, const std::function<void(std::span<const std::byte>)>& take);

}  // namespace faultline::fabric
