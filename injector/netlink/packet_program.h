#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "injector/netlink/packet_hook.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// Writes an eBPF program for packets, instruction by instruction; jumps name their place. The
/// program gets a __sk_buff in register 1 and returns one of TC_ACT_... in register 0.
/// Documentation/bpf/standardization/instruction-set.rst of the kernel has the rules.
class PacketCode {
 public:
  using Register = std::uint8_t;

  PacketCode& set(Register target, std::int32_t value);
  PacketCode& copy(Register target, Register source);
  /// `operation` is one of BPF_ADD, BPF_AND, ...: 64 bits.
  PacketCode& calculate(std::uint8_t operation, Register target, std::int32_t value);
  PacketCode& calculate(std::uint8_t operation, Register target, Register source);
  /// `size` is BPF_B, BPF_H, BPF_W or BPF_DW.
  PacketCode& load(std::uint8_t size, Register target, Register base, std::int16_t offset);
  PacketCode& store(std::uint8_t size, Register base, std::int16_t offset, Register source);
  /// Register 0 becomes what the packet has there, in host byte order; the Ethernet header begins
  /// at 0. Needs the __sk_buff in register 6, and forgets registers 1 to 5. A packet that is too
  /// short passes.
  PacketCode& loadPacket(std::uint8_t size, std::int32_t offset);
  PacketCode& loadPacket(std::uint8_t size, Register offset, std::int32_t more);
  /// Calls a function of the kernel (BPF_FUNC_...); forgets registers 1 to 5.
  PacketCode& call(std::int32_t function);
  PacketCode& jump(std::string place);
  /// If `comparison` (BPF_JEQ, BPF_JGT, ...) holds of the lower 32 bits, without a sign unless the
  /// comparison has one.
  PacketCode& jumpIf(std::uint8_t comparison, Register left, std::int32_t right, std::string place);
  /// The place of this name is here.
  PacketCode& here(std::string place);
  /// The program ends.
  PacketCode& leave(std::int32_t result);

  /// The finished program. A jump to a place that is nowhere ends the process.
  std::vector<bpf_insn> finish() const;

 private:
  struct Jump {
    std::size_t from;
    std::string place;
  };
  struct Place {
    std::string name;
    std::size_t at;
  };
  PacketCode& add(std::uint8_t code, Register target, Register source, std::int16_t offset,
                  std::int32_t value);

  std::vector<bpf_insn> code_;
  std::vector<Jump> jumps_;
  std::vector<Place> places_;
};

/// A random share as a number of 32 bits to compare one with: below it in that share of all cases.
std::int32_t shareOf32Bits(double share);

/// What is done to packets that pass an interface in one way.
struct PacketProgram {
  Passing passing = Passing::kReceived;
  std::vector<bpf_insn> code{};
};

/// Runs the programs on what passes the interface (clsact, cls_bpf). Foreign state is left alone:
/// kAlreadyExists when the interface has a clsact of somebody's. kUnsupported when the kernel lacks
/// the mechanism, or lets only root of the machine load programs (and this is not root).
Status addPacketPrograms(Socket& socket, int ifindex, std::span<const PacketProgram> programs);

/// Removes what addPacketPrograms() has made.
Status removePacketPrograms(Socket& socket, int ifindex);

}  // namespace faultline::netlink
