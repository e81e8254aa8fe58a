#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "injector/fault_kind.h"

/// What the descriptions of several faults have in common.
namespace faultline::injector {

/// The longest time that a parameter may name: longer than any run.
inline constexpr double kLongestSeconds = 3600;

/// Which way: what the node sends, or what it should receive.
inline constexpr std::array<std::string_view, 3> kWays{"both", "out", "in"};
inline constexpr std::string_view kWayMeaning =
    "out: what the node sends; in: what it should receive";

/// Of a link that loses much, a job may think what it likes; of one that is killed nothing is left.
inline constexpr std::array kAnySignatures{Signature{{kAnyCause}, {kAnyCause}}};
inline constexpr std::array kPortSignatures{Signature{{"local_nic"}, {"remote_nic"}}};

/// Of a fault that takes no bandwidth.
inline std::vector<LinkLoss> nothing(const FaultParameters& /*parameters*/, BitsPerSecond /*rate*/,
                                     Duration /*longest*/) {
  return {};
}

/// Of one during which nothing passes.
inline std::vector<LinkLoss> allOfIt(const FaultParameters& /*parameters*/, BitsPerSecond /*rate*/,
                                     Duration /*longest*/) {
  return {LinkLoss{}};
}

}  // namespace faultline::injector
