#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "injector/fault_kind.h"
#include "injector/faults/crossing_probe.h"
#include "injector/faults/fault_list.h"
#include "injector/faults/port_program_fault.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/interface.h"

namespace faultline::injector {
namespace {

// RFC 791: every path carries that much.
constexpr double kSmallestSize = 68;
constexpr double kLargestSize = 65'535;
// Nothing is that large.
constexpr Bytes kLargestPossible = 1 << 30;
// A few may find a full queue on the way.
constexpr int kProbes = 64;

constexpr std::array kMtuShrinkParameters{
    ParameterSpec{
        "size",
        ParameterType::kSize,
        "1kB",
        "the largest packet that passes, with its IP header and without that of Ethernet; "
        "below the MTU that the link has",
        {},
        kSmallestSize,
        kLargestSize},
    ParameterSpec{"direction", ParameterType::kEnum, "both", kWayMeaning, kWays},
};

// Small packets pass, and with them whatever asks whether the link lives: neither NIC nor path is
// dead, and what stands still is the rail. A job whose packets are small sees nothing.
constexpr Finding kRailOrNothing{.cause = "rail", .orNone = true};
constexpr std::array kMtuShrinkSignatures{Signature{kRailOrNothing, kRailOrNothing}};

/// Drops what has more than `size` bytes behind its Ethernet header. The kernel moves up to 64 KiB
/// of a stream at once and cuts them later (gso_size): those are as large as each piece will be.
std::vector<bpf_insn> dropAbove(Bytes size) {
  using Register = netlink::PacketCode::Register;
  constexpr Register kResult{0}, kBuffer{6}, kPiece{7}, kHeaders{8}, kProtocol{9};
  constexpr int kIpHeader = ETH_HLEN;
  constexpr int kIpv4Protocol = kIpHeader + 9;
  constexpr int kIpv6Protocol = kIpHeader + 6;
  constexpr int kIpv6HeaderBytes = 40;
  constexpr int kUdpHeaderBytes = 8;
  constexpr int kTcpDataOffset = 12;  // of its header; its upper half counts 32-bit words
  return netlink::PacketCode()
      .copy(kBuffer, Register{1})
      .load(BPF_W, kPiece, kBuffer, offsetof(__sk_buff, gso_size))
      .jumpIf(BPF_JNE, kPiece, 0, "pieces")
      .load(BPF_W, kResult, kBuffer, offsetof(__sk_buff, len))
      .jump("judge")

      .here("pieces")
      .set(kHeaders, kIpHeader)
      .load(BPF_W, kResult, kBuffer, offsetof(__sk_buff, protocol))
      .jumpIf(BPF_JEQ, kResult, htons(ETH_P_IP), "ipv4")
      .jumpIf(BPF_JEQ, kResult, htons(ETH_P_IPV6), "ipv6")
      .jump("sum")
      .here("ipv4")
      .loadPacket(BPF_B, kIpHeader)
      .calculate(BPF_AND, kResult, 0xf)
      .calculate(BPF_LSH, kResult, 2)
      .calculate(BPF_ADD, kHeaders, kResult)
      .loadPacket(BPF_B, kIpv4Protocol)
      .copy(kProtocol, kResult)
      .jump("transport")
      .here("ipv6")
      .calculate(BPF_ADD, kHeaders, kIpv6HeaderBytes)
      .loadPacket(BPF_B, kIpv6Protocol)
      .copy(kProtocol, kResult)
      .here("transport")
      .jumpIf(BPF_JEQ, kProtocol, IPPROTO_TCP, "tcp")
      .jumpIf(BPF_JNE, kProtocol, IPPROTO_UDP, "sum")
      .calculate(BPF_ADD, kHeaders, kUdpHeaderBytes)
      .jump("sum")
      .here("tcp")
      .loadPacket(BPF_B, kHeaders, kTcpDataOffset)
      .calculate(BPF_RSH, kResult, 4)
      .calculate(BPF_LSH, kResult, 2)
      .calculate(BPF_ADD, kHeaders, kResult)
      .here("sum")
      .copy(kResult, kPiece)
      .calculate(BPF_ADD, kResult, kHeaders)

      .here("judge")
      .jumpIf(BPF_JGT, kResult, static_cast<std::int32_t>(size) + ETH_HLEN, "drop")
      .leave(TC_ACT_UNSPEC)
      .here("drop")
      .leave(TC_ACT_SHOT)
      .finish();
}

/// Packets above a size vanish on a link that otherwise works (a black hole of path MTU discovery:
/// nobody is told). Evidence: of probe frames across the link those of exactly this size pass, and
/// of those with one byte more none.
class MtuShrink final : public PortProgramFault {
 public:
  MtuShrink(const FaultParameters& parameters, const netlink::LinkTarget& target)
      : PortProgramFault("mtu_shrink", target),
        size_(parameters.get<Size>("size").bytes),
        direction_(parameters.get<std::string>("direction")) {}

  Status prepare() override {
    ASSIGN_OR_RETURN(const netlink::NetDevice nic,
                     netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
    if (size_ < Bytes{nic.mtu}) return tryOut(smallestThatVanishes());
    return errorf(Code::kInvalidArgument,
                  "mtu_shrink: size: {} bytes are not below the MTU of {}, {} bytes: no packet "
                  "would vanish",
                  size_, nic.name, nic.mtu);
  }

 protected:
  std::vector<netlink::PacketProgram> programs(bool broken) const override {
    const Bytes size = broken ? size_ : kLargestPossible;
    std::vector<netlink::PacketProgram> all;
    if (strikes("out")) all.push_back({netlink::Passing::kReceived, dropAbove(size)});
    if (strikes("in")) all.push_back({netlink::Passing::kSent, dropAbove(size)});
    return all;
  }

  Result<std::vector<CrossingProbe>> openProbes() const override {
    std::vector<CrossingProbe> all;
    for (const std::size_t size : {static_cast<std::size_t>(size_), smallestThatVanishes()}) {
      ASSIGN_OR_RETURN(CrossingProbe probe, CrossingProbe::open(target_, kProbes, size));
      all.push_back(std::move(probe));
    }
    return all;
  }

  Status look() override {
    ASSIGN_OR_RETURN(const netlink::NetDevice nic,
                     netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
    carrier_ = nic.carrier;
    return okStatus();
  }

  bool fits() const override {
    return carrier_ && fitting().out() > 0 && fitting().in() > 0 &&
           (larger().out() == 0) == strikes("out") && (larger().in() == 0) == strikes("in");
  }

  std::string seen() const override {
    return fmt::format(
        "the NIC {} its carrier; of {} probes of {} bytes in each direction {} left "
        "the switch by other ports, and {} towards the NIC; of {} with one byte "
        "more {} and {}",
        carrier_ ? "kept" : "lost", fitting().sent(), size_, fitting().out(), fitting().in(),
        larger().sent(), larger().out(), larger().in());
  }

 private:
  std::size_t smallestThatVanishes() const { return static_cast<std::size_t>(size_) + 1; }
  bool strikes(std::string_view way) const { return direction_ == "both" || direction_ == way; }
  const CrossingProbe& fitting() const { return probes_.front(); }
  const CrossingProbe& larger() const { return probes_.back(); }

  Bytes size_;
  std::string direction_;
  bool carrier_ = false;
};

}  // namespace

constinit const FaultKind kMtuShrinkKind{
    .name = "mtu_shrink",
    .summary = "Packets above a size vanish on one link, and smaller ones pass.",
    .sees =
        "streams that stand still after their first full packet, while probes, questions and "
        "everything else that is small are answered",
    .evidence =
        "probe frames of the injector's own of exactly this size cross the link, and of "
        "those with one byte more none",
    .undo = "the program on the switch's port is removed; it dies with the switch's namespace",
    .parameters = kMtuShrinkParameters,
    .signatures = kMtuShrinkSignatures,
    .alone = true,
    .needs = {KernelMechanism::kPacketProgram},
    .make = makeOne<MtuShrink>};

}  // namespace faultline::injector
