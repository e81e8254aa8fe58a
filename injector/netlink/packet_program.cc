#include "injector/netlink/packet_program.h"

#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "base/unique_fd.h"

namespace faultline::netlink {
namespace {

constexpr const char* kName = "faultline";
// The programs call no function that the kernel keeps for programs under the GPL.
constexpr const char* kLicense = "Apache-2.0";

/// The descriptor of the program, or -1 (errno). `log` gets what the kernel's check says; a log
/// that is too small makes a good program fail, and an empty one does not.
UniqueFd tryLoad(const std::vector<bpf_insn>& code, std::span<char> log) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_SCHED_CLS;
  attributes.insns = reinterpret_cast<std::uintptr_t>(code.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(code.size());
  attributes.license = reinterpret_cast<std::uintptr_t>(kLicense);
  attributes.log_buf = log.empty() ? 0 : reinterpret_cast<std::uintptr_t>(log.data());
  attributes.log_size = static_cast<std::uint32_t>(log.size());
  attributes.log_level = log.empty() ? 0 : 1;
  std::strncpy(attributes.prog_name, kName, sizeof attributes.prog_name - 1);
  return UniqueFd(
      static_cast<int>(::syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes)));
}

/// The log of the kernel's check comes with the error.
Result<UniqueFd> load(const std::vector<bpf_insn>& code) {
  if (UniqueFd loaded = tryLoad(code, {})) return loaded;
  std::vector<char> log(std::size_t{64} * 1024);
  if (UniqueFd loaded = tryLoad(code, log)) return loaded;
  constexpr const char* kAttempt = "load a program for packets (eBPF)";
  if (errno == EPERM || errno == EACCES) {
    if (log.front() != '\0') return errorf(Code::kInternal, "{}: {}", kAttempt, log.data());
    return errorf(
        Code::kUnsupported,
        "{}: the kernel lets only root of the machine do that (CAP_BPF): run the bench as "
        "root, outside of a user namespace",
        kAttempt);
  }
  if (errno == ENOSYS) return errorf(Code::kUnsupported, "{}: this kernel has no eBPF", kAttempt);
  return Status::fromErrno(errno, fmt::format("{}: {}", kAttempt, log.data()));
}

Status attach(Socket& socket, int ifindex, const PacketProgram& program) {
  ASSIGN_OR_RETURN(const UniqueFd loaded, load(program.code));
  return addHookedFilter(socket, ifindex, program.passing,
                         fmt::format("run a program on packets of interface {}", ifindex),
                         [&](Message& nested) {
                           nested.put(TCA_BPF_FD, static_cast<std::uint32_t>(loaded.get()));
                           nested.putString(TCA_BPF_NAME, kName);
                         });
}

}  // namespace

PacketCode& PacketCode::add(std::uint8_t code, Register target, Register source,
                            std::int16_t offset, std::int32_t value) {
  bpf_insn instruction{};
  instruction.code = code;
  instruction.dst_reg = target;
  instruction.src_reg = source;
  instruction.off = offset;
  instruction.imm = value;
  code_.push_back(instruction);
  return *this;
}

PacketCode& PacketCode::set(Register target, std::int32_t value) {
  return add(BPF_ALU64 | BPF_MOV | BPF_K, target, 0, 0, value);
}
PacketCode& PacketCode::copy(Register target, Register source) {
  return add(BPF_ALU64 | BPF_MOV | BPF_X, target, source, 0, 0);
}
PacketCode& PacketCode::calculate(std::uint8_t operation, Register target, std::int32_t value) {
  return add(BPF_ALU64 | BPF_K | operation, target, 0, 0, value);
}
PacketCode& PacketCode::calculate(std::uint8_t operation, Register target, Register source) {
  return add(BPF_ALU64 | BPF_X | operation, target, source, 0, 0);
}
PacketCode& PacketCode::load(std::uint8_t size, Register target, Register base,
                             std::int16_t offset) {
  return add(BPF_LDX | BPF_MEM | size, target, base, offset, 0);
}
PacketCode& PacketCode::store(std::uint8_t size, Register base, std::int16_t offset,
                              Register source) {
  return add(BPF_STX | BPF_MEM | size, base, source, offset, 0);
}
PacketCode& PacketCode::loadPacket(std::uint8_t size, std::int32_t offset) {
  return add(BPF_LD | BPF_ABS | size, 0, 0, 0, offset);
}
PacketCode& PacketCode::loadPacket(std::uint8_t size, Register offset, std::int32_t more) {
  return add(BPF_LD | BPF_IND | size, 0, offset, 0, more);
}
PacketCode& PacketCode::call(std::int32_t function) {
  return add(BPF_JMP | BPF_CALL, 0, 0, 0, function);
}
PacketCode& PacketCode::jump(std::string place) {
  jumps_.push_back({code_.size(), std::move(place)});
  return add(BPF_JMP | BPF_JA, 0, 0, 0, 0);
}
PacketCode& PacketCode::jumpIf(std::uint8_t comparison, Register left, std::int32_t right,
                               std::string place) {
  jumps_.push_back({code_.size(), std::move(place)});
  return add(BPF_JMP32 | BPF_K | comparison, left, 0, 0, right);
}
PacketCode& PacketCode::here(std::string place) {
  places_.push_back({std::move(place), code_.size()});
  return *this;
}
PacketCode& PacketCode::leave(std::int32_t result) {
  set(0, result);
  return add(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

std::vector<bpf_insn> PacketCode::finish() const {
  std::vector<bpf_insn> code = code_;
  for (const Jump& jump : jumps_) {
    const auto place = std::ranges::find(places_, jump.place, &Place::name);
    if (place == places_.end()) std::abort();
    const auto distance =
        static_cast<std::ptrdiff_t>(place->at) - static_cast<std::ptrdiff_t>(jump.from) - 1;
    code[jump.from].off = static_cast<std::int16_t>(distance);
  }
  return code;
}

std::int32_t shareOf32Bits(double share) {
  const double below = std::clamp(share, 0.0, 1.0) * std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(std::llround(below)));
}

Status addPacketPrograms(Socket& socket, int ifindex, std::span<const PacketProgram> programs) {
  RETURN_IF_ERROR(addHook(socket, ifindex));
  for (const PacketProgram& program : programs) {
    const Status status = attach(socket, ifindex, program);
    if (status.ok()) continue;
    const Status undone = removeHook(socket, ifindex);
    return undone.ok() ? status : status.withContext(undone.message());
  }
  return okStatus();
}

Status removePacketPrograms(Socket& socket, int ifindex) { return removeHook(socket, ifindex); }

}  // namespace faultline::netlink
