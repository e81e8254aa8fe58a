#include <linux/pkt_cls.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "injector/fault_kind.h"
#include "injector/faults/crossing_probe.h"
#include "injector/faults/fault_list.h"
#include "injector/faults/port_program_fault.h"
#include "injector/faults/share_proof.h"
#include "injector/faults/usual_rows.h"

namespace faultline::injector {
namespace {

constexpr std::array kDuplicateParameters{
    ParameterSpec{"percent",
                  ParameterType::kPercent,
                  "",
                  "share of the packets that arrive twice, at random; a packet is what the kernel "
                  "moves at once, up to 64 KiB of a TCP stream",
                  {},
                  1,
                  100},
    ParameterSpec{"direction", ParameterType::kEnum, "both", kWayMeaning, kWays},
};

/// Sends a copy of a packet the same way again, behind which the packet itself follows. The copy
/// comes by here, too, and is known by its mark; no other packet has one, as the kernel takes it
/// away where a packet changes its namespace.
std::vector<bpf_insn> duplicate(double share, int ifindex, netlink::Passing passing) {
  using Register = netlink::PacketCode::Register;
  constexpr Register kResult{0}, kFirst{1}, kSecond{2}, kThird{3}, kBuffer{6}, kMark{7};
  constexpr std::int32_t kCopyMark = 0x0fa17d0b;
  constexpr auto kMarkOffset = static_cast<std::int16_t>(offsetof(__sk_buff, mark));
  const bool received = passing == netlink::Passing::kReceived;
  netlink::PacketCode code;
  code.copy(kBuffer, kFirst)
      .load(BPF_W, kResult, kBuffer, kMarkOffset)
      .set(kMark, 0)
      .jumpIf(BPF_JEQ, kResult, kCopyMark, "done");
  if (share < 1) {
    code.call(BPF_FUNC_get_prandom_u32)
        .jumpIf(BPF_JGE, kResult, netlink::shareOf32Bits(share), "pass");
  }
  return code.set(kMark, kCopyMark)
      .store(BPF_W, kBuffer, kMarkOffset, kMark)
      .copy(kFirst, kBuffer)
      .set(kSecond, ifindex)
      .set(kThird, received ? BPF_F_INGRESS : 0)
      .call(BPF_FUNC_clone_redirect)
      .set(kMark, 0)
      .here("done")
      .store(BPF_W, kBuffer, kMarkOffset, kMark)
      .here("pass")
      .leave(TC_ACT_UNSPEC)
      .finish();
}

/// A share of the packets of a link arrives twice. Evidence: more probe frames arrive than were
/// sent, by this share.
class Duplicate final : public PortProgramFault {
 public:
  Duplicate(const FaultParameters& parameters, const netlink::LinkTarget& target)
      : PortProgramFault("duplicate", target) {
    const double share = parameters.get<Percent>("percent").value / kWholeInPercent;
    const auto& direction = parameters.get<std::string>("direction");
    out_ = direction == "in" ? 0 : share;
    in_ = direction == "out" ? 0 : share;
  }

  Status prepare() override { return tryOut(); }

 protected:
  std::vector<netlink::PacketProgram> programs(bool broken) const override {
    std::vector<netlink::PacketProgram> all;
    for (const netlink::Passing passing : {netlink::Passing::kReceived, netlink::Passing::kSent}) {
      const double share = passing == netlink::Passing::kReceived ? out_ : in_;
      if (share <= 0) continue;
      all.push_back({passing, duplicate(broken ? share : 0, target_.attachment.ifindex, passing)});
    }
    return all;
  }

  Result<std::vector<CrossingProbe>> openProbes() const override {
    const int probes = std::max(probesForShare(out_), probesForShare(in_));
    ASSIGN_OR_RETURN(CrossingProbe probe, CrossingProbe::open(target_, probes));
    std::vector<CrossingProbe> all;
    all.push_back(std::move(probe));
    return all;
  }

  bool fits() const override { return fits(out_, probe().out()) && fits(in_, probe().in()); }

  std::string seen() const override {
    const int sent = probe().sent();
    return fmt::format(
        "of {} probes in each direction {} left the switch by another port: {}; {} "
        "left it towards the NIC: {}",
        sent, probe().out(), shareInWords("twice", out_, sent, probe().out() - sent), probe().in(),
        shareInWords("twice", in_, sent, probe().in() - sent));
  }

 private:
  const CrossingProbe& probe() const { return probes_.front(); }

  /// Without a share, nothing comes twice, and a queue may have dropped some.
  bool fits(double share, int passed) const {
    const int sent = probe().sent();
    if (share <= 0) return passed > 0 && passed <= sent;
    // Of copies as of others: there are 1 + share times as many as probes.
    return fitsShare(share, sent, passed - sent, {.fewer = kQueueShare * (1 + share)});
  }

  double out_ = 0;
  double in_ = 0;
};

}  // namespace

constinit const FaultKind kDuplicateKind{
    .name = "duplicate",
    .summary = "A share of the packets of one link arrives twice.",
    .sees =
        "datagrams that come again; of streams the kernel drops the copies, and a little of the "
        "link's rate goes for them",
    .evidence = "more probe frames of the injector's own arrive than were sent, by this share",
    .undo = "the program on the switch's port is removed; it dies with the switch's namespace",
    .parameters = kDuplicateParameters,
    .alone = true,
    .needs = {KernelMechanism::kPacketProgram},
    .make = makeOne<Duplicate>};

}  // namespace faultline::injector
