#pragma once

#include <cstdint>
#include <string>

namespace faultline::rdma {

/// The RDMA device that a fault acts on, in the network namespace of the calling thread. It says
/// nothing of nodes or ranks.
struct RdmaTarget {
  std::string device;      ///< "rxe0", "mlx5_0"
  std::uint32_t port = 1;  ///< counted from 1
  /// The RDMA device at the other end of the cable, where that is on this machine as well: its view
  /// then is evidence, too. Empty: nobody is asked there.
  std::string other_end{};
};

}  // namespace faultline::rdma
