#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "harness/site/rdma_vm/vm_plan.h"

namespace faultline::rdma_vm {

/// What has passed one port of the switch, and whether anything may. In memory that controller and
/// switch share: one writes `blocked`, the other everything else.
struct SwitchPort {
  std::atomic<std::uint64_t> inFrames;  ///< from the host
  std::atomic<std::uint64_t> inBytes;
  std::atomic<std::uint64_t> inRoceFrames;
  std::atomic<std::uint64_t> outFrames;  ///< to the host
  std::atomic<std::uint64_t> outBytes;
  std::atomic<std::uint64_t> dropped;   ///< in or out, because the port is blocked
  std::atomic<std::uint64_t> overflow;  ///< out, because the host did not take them
  /// A silent black hole: nothing passes in either direction, and no end is told.
  std::atomic<std::uint32_t> blocked;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The ports of all hosts: [host * nics + nic].
class SwitchPorts {
 public:
  /// New, all zero.
  static Result<SwitchPorts> create(int hosts, int nics);
  /// Of another process, by the descriptor that it was handed.
  static Result<SwitchPorts> open(UniqueFd fd, int hosts, int nics);
  SwitchPorts(SwitchPorts&& other) noexcept;
  SwitchPorts& operator=(SwitchPorts&& other) = delete;
  ~SwitchPorts();

  int fd() const { return fd_.get(); }
  SwitchPort& at(int host, int nic) const;
  int hosts() const { return hosts_; }
  int nics() const { return nics_; }

 private:
  SwitchPorts(UniqueFd fd, void* memory, int hosts, int nics);
  std::size_t size() const;

  UniqueFd fd_;
  void* memory_ = nullptr;
  int hosts_ = 0;
  int nics_ = 0;
};

/// Whether an Ethernet frame carries RoCE v2, over IPv4 without options or IPv6 without extension
/// headers, which is how RDMA devices send it.
bool isRoce(std::span<const std::uint8_t> frame);

/// Where a frame goes that came in at the port of `host` on NIC `nic`: the hosts on the same NIC
/// number, i.e. of one rail, whose port is not blocked. A group's frame goes to all others, one to
/// a host only there, and one to nobody known nowhere. Counts everything but what overflows. Pure
/// but for the counters.
std::vector<int> forward(const SwitchPorts& ports, int host, int nic,
                         std::span<const std::uint8_t> frame);

}  // namespace faultline::rdma_vm
