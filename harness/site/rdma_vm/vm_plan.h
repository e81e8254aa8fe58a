#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "harness/site/limits.h"

/// The soft-RoCE laboratory: hosts that are guests of qemu, with a real kernel and real verbs, on a
/// machine that has no RDMA. docs/rdma_lab.md.
namespace faultline::rdma_vm {

/// What laboratory to make.
struct VmSpec {
  int hosts = 2;
  int rails = 2;             ///< NICs of each host besides the management one, each with an rxe
  int memoryMiB = 512;       ///< of each guest
  unsigned mtu = kRailsMtu;  ///< bytes, of the rails; RoCE uses the next power of two below it
  /// Absolute path of a folder that the guests see and write at the same place; empty: none. All
  /// else of the machine's files they see read-only, and what they write is gone with them.
  std::string sharedFolder;
  /// For a guest to get from nothing to the last rxe device; software emulation on a busy machine
  /// takes its time.
  Duration bootBudget = kBootBudget;

  /// A frame carries a RoCE packet of 4096 bytes: a quarter of the packets that 1024 bytes in
  /// frames of 1500 would take, and packets are what emulation is slow at.
  static constexpr unsigned kRailsMtu = 4200;
  static constexpr unsigned kSmallestMtu = 576;
  static constexpr unsigned kLargestMtu = 9000;
  /// What a machine's memory and processors can be expected to carry.
  static constexpr site::Limits kMost{
      .nodes = 8, .ranksPerNode = site::kMost.ranksPerNode, .rails = 8};
  static constexpr int kSmallestMemoryMiB = 256;
  static constexpr Duration kBootBudget = 180s;

  /// kInvalidArgument with what is possible.
  Status check() const;
  /// NICs of each host: 0 is the management network, 1 + rail the others.
  int nics() const { return rails + 1; }
};

using MacAddress = std::array<std::uint8_t, 6>;

/// Names and addresses inside the guests: those of all clusters that the bench makes itself
/// (site/addresses.h), so that a program is told the same in all of them.
std::string nicName(int nic);
std::string nicAddress(int host, int nic);
/// "rxe0" is the RDMA device of rail 0.
std::string rdmaDeviceName(int rail);

/// Locally administered; the last three bytes are the NIC and the host.
MacAddress macOf(int host, int nic);
std::string inWords(const MacAddress& mac);
/// The host whose NIC has this address, or -1: another's, or a group's.
int hostOf(const MacAddress& mac);

}  // namespace faultline::rdma_vm
