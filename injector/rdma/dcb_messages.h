#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/parameter.h"
#include "base/status.h"
#include "base/units.h"
#include "injector/netlink/message.h"

/// The rate limit that an adapter has for each of its traffic classes (IEEE 802.1Qaz "maxrate";
/// uapi linux/dcbnl.h, DCB_ATTR_IEEE_MAXRATE). Unlike traffic control it also holds for what the
/// adapter sends by itself, RoCE. Messages and arithmetic, without a socket.
///
/// Unproven on hardware: the messages are exact and tested, no adapter has been measured with it.
namespace faultline::rdma {

inline constexpr std::size_t kTrafficClasses = 8;

/// Limits in kbit/s, as the kernel counts; 0: none. Never write the link's own rate for "none": a
/// driver with a small field mishandles large numbers.
using Maxrates = std::array<std::uint64_t, kTrafficClasses>;

/// What a text of the fault's parameter `traffic_class` means: none for all of them.
std::optional<std::size_t> trafficClassOf(std::string_view text);

netlink::Message askMaxrates(std::string_view netdev);
netlink::Message setMaxrates(std::string_view netdev, const Maxrates& rates);

/// Nothing where the answer has none: the driver cannot do it.
std::optional<Maxrates> parseMaxrates(const nlmsghdr* answer);

/// To a change the kernel answers with a message of its own that holds the driver's error number,
/// besides an acknowledgement that says nothing of it. 0: done.
int parseSetError(const nlmsghdr* answer);

/// All classes (or one, from 0 on) limited to `rate`: a Rate, or a Percent of `link_rate`, which is
/// 0 where nobody knows it. mlx5 counts in 100 Mbit/s below 25.5 Gbit/s and in 1 Gbit/s above, has
/// no number above 255 Gbit/s, and rounds down silently: the plan does it first, so that what is
/// reported is what is set. kInvalidArgument where no number fits, or where a class would get
/// faster than it is.
Result<Maxrates> planMaxrates(const Maxrates& before, const ParameterValue& rate,
                              std::optional<std::size_t> traffic_class, BitsPerSecond link_rate);

/// "0: 10Gbit, 1: none, ...", shortened when all are equal.
std::string formatMaxrates(const Maxrates& rates);

}  // namespace faultline::rdma
