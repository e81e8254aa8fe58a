#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace faultline::nccl {

/// A rail of this node, with its subnet.
struct RailSubnet {
  std::string name;           ///< "rail 0 (eth0)"
  std::uint32_t address = 0;  ///< IPv4, host byte order
  int prefix = 0;             ///< bits; 0: not known
};

/// What to say where another node names its rails in another order: the address of one of them is
/// not in the subnet of this node's rail of the same number, but in that of another one.
/// `addresses` are the other node's, by rail. Empty: nothing, as where rails are routed. Pure.
std::string crossedRails(const std::vector<RailSubnet>& rails,
                         const std::vector<std::uint32_t>& addresses);

}  // namespace faultline::nccl
