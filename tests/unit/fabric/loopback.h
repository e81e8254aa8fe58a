#pragma once

#include <cstdint>

namespace faultline::fabric {

/// 127.0.0.1 in host byte order.
inline constexpr std::uint32_t kLoopback = 0x7f000001;

}  // namespace faultline::fabric
