#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/checked_probe.h"
#include "injector/faults/crossing_probe.h"
#include "injector/faults/fault_list.h"
#include "injector/faults/share_proof.h"
#include "injector/faults/still_watch.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/checksum_offload.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/packet_program.h"

namespace faultline::injector {
namespace {

constexpr std::array<std::string_view, 2> kCorruptHow{"detected", "silent"};
constexpr std::array kCorruptParameters{
    ParameterSpec{
        "percent",
        ParameterType::kPercent,
        "",
        "share of the packets that are damaged, at random: packets as a wire has them, of "
        "IPv4 with TCP or UDP and 16 bytes or more of payload",
        {},
        0.1,
        100},
    ParameterSpec{"how", ParameterType::kEnum, "detected",
                  "detected: the checksum says so, and the receiver's kernel drops it (UDP without "
                  "a checksum is left alone). silent: the checksum is made to fit, and the "
                  "receiver's program gets it",
                  kCorruptHow},
    ParameterSpec{"direction", ParameterType::kEnum, "both", kWayMeaning, kWays},
};

// Of what is dropped a job may think what it likes, as with `loss`; what is silent it cannot see.
constexpr std::array kCorruptSignatures{Signature{{kAnyCause}, {kAnyCause}}};

// To send and to receive one in each direction, and its part of a pause, on a busy machine.
constexpr Duration kTimeOfProbe = 100us;

/// Inverts some bits of two bytes of the payload, anywhere in it; `silent`: the checksum of TCP or
/// UDP follows. No pattern that the checksum's arithmetic takes for another one.
std::vector<bpf_insn> damage(double share, bool silent) {
  using Register = netlink::PacketCode::Register;
  constexpr Register kResult{0}, kFirst{1}, kSecond{2}, kThird{3}, kFourth{4}, kFifth{5};
  constexpr Register kBuffer{6}, kTransport{7}, kChecksum{8}, kPayload{9}, kStack{10};
  constexpr std::int32_t kPattern = 0x5a5a;
  constexpr int kSmallestPayload = 16;
  constexpr int kWord = 2;               // bytes that are changed, and what a checksum adds up
  constexpr std::int16_t kWordAt = -8;   // on the stack
  constexpr std::int16_t kRoomAt = -16;  // the same: how many places there are
  constexpr int kIpHeader = ETH_HLEN;
  constexpr int kFragment = kIpHeader + 6;
  constexpr int kFragmentOffset = 0x1fff;
  constexpr int kProtocol = kIpHeader + 9;
  constexpr int kUdpChecksum = 6;
  constexpr int kUdpHeader = 8;
  constexpr int kTcpChecksum = 16;
  constexpr int kTcpDataOffset = 12;  // its upper half counts 32-bit words
  netlink::PacketCode code;
  code.copy(kBuffer, kFirst);
  if (share < 1) {
    code.call(BPF_FUNC_get_prandom_u32)
        .jumpIf(BPF_JGE, kResult, netlink::shareOf32Bits(share), "pass");
  }
  code.load(BPF_W, kResult, kBuffer, offsetof(__sk_buff, protocol))
      .jumpIf(BPF_JNE, kResult, htons(ETH_P_IP), "pass")
      .loadPacket(BPF_H, kFragment)
      .calculate(BPF_AND, kResult, kFragmentOffset)
      .jumpIf(BPF_JNE, kResult, 0, "pass")
      .loadPacket(BPF_B, kIpHeader)
      .calculate(BPF_AND, kResult, 0xf)
      .calculate(BPF_LSH, kResult, 2)
      .calculate(BPF_ADD, kResult, kIpHeader)
      .copy(kTransport, kResult)
      .copy(kChecksum, kTransport)
      .copy(kPayload, kTransport)
      .loadPacket(BPF_B, kProtocol)
      .jumpIf(BPF_JEQ, kResult, IPPROTO_TCP, "tcp")
      .jumpIf(BPF_JNE, kResult, IPPROTO_UDP, "pass")
      .calculate(BPF_ADD, kChecksum, kUdpChecksum)
      .calculate(BPF_ADD, kPayload, kUdpHeader);
  if (!silent) {  // RFC 768: a field of 0 is no checksum, and no damage can be detected
    code.loadPacket(BPF_H, kChecksum, 0).jumpIf(BPF_JEQ, kResult, 0, "pass");
  }
  code.jump("payload")
      .here("tcp")
      .calculate(BPF_ADD, kChecksum, kTcpChecksum)
      .loadPacket(BPF_B, kTransport, kTcpDataOffset)
      .calculate(BPF_RSH, kResult, 4)
      .calculate(BPF_LSH, kResult, 2)
      .calculate(BPF_ADD, kPayload, kResult)
      .here("payload")
      .load(BPF_W, kResult, kBuffer, offsetof(__sk_buff, len))
      .calculate(BPF_SUB, kResult, kPayload)
      .jumpIf(BPF_JSLT, kResult, kSmallestPayload, "pass")
      .calculate(BPF_SUB, kResult, kWord - 1)
      .store(BPF_DW, kStack, kRoomAt, kResult)
      .call(BPF_FUNC_get_prandom_u32)
      .load(BPF_DW, kFirst, kStack, kRoomAt)
      .calculate(BPF_MOD, kResult, kFirst)
      .calculate(BPF_AND, kResult, ~1)
      .calculate(BPF_ADD, kPayload, kResult)
      .copy(kFirst, kBuffer)
      .copy(kSecond, kPayload)
      .copy(kThird, kStack)
      .calculate(BPF_ADD, kThird, kWordAt)
      .set(kFourth, kWord)
      .call(BPF_FUNC_skb_load_bytes)
      .jumpIf(BPF_JNE, kResult, 0, "pass")
      .load(BPF_H, kTransport, kStack, kWordAt)
      .copy(kFourth, kTransport)
      .calculate(BPF_XOR, kFourth, kPattern)
      .store(BPF_H, kStack, kWordAt, kFourth);
  if (silent) {
    code.loadPacket(BPF_B, kProtocol)
        .set(kFifth, kWord)
        .jumpIf(BPF_JEQ, kResult, IPPROTO_TCP, "follow")
        .set(kFifth, kWord | BPF_F_MARK_MANGLED_0)  // UDP without a checksum stays without one
        .here("follow")
        .load(BPF_H, kFourth, kStack, kWordAt)
        .copy(kFirst, kBuffer)
        .copy(kSecond, kChecksum)
        .copy(kThird, kTransport)
        .call(BPF_FUNC_l4_csum_replace)
        .jumpIf(BPF_JNE, kResult, 0, "pass");
  }
  return code.copy(kFirst, kBuffer)
      .copy(kSecond, kPayload)
      .copy(kThird, kStack)
      .calculate(BPF_ADD, kThird, kWordAt)
      .set(kFourth, kWord)
      .set(kFifth, 0)
      .call(BPF_FUNC_skb_store_bytes)
      .here("pass")
      .leave(TC_ACT_UNSPEC)
      .finish();
}

/// One direction of the link: packets are made as a wire has them where they are sent, and damaged
/// where they arrive.
class DamagedWay {
 public:
  DamagedWay(const netlink::LinkEnd& sender, const netlink::LinkEnd& receiver)
      : sender_(sender), receiver_(receiver) {}

  /// Notes the state to go back to, and whether the programs can be run.
  Status prepare() {
    ASSIGN_OR_RETURN(leaves_, netlink::leavesChecksums(sender_));
    RETURN_IF_ERROR(install(damage(0, true)));
    return end();
  }

  /// After an error, too, end() takes back what was done.
  Status begin(double share, bool silent) {
    computing_ = true;  // also after an error: it may be half done
    RETURN_IF_ERROR(netlink::setLeavesChecksums(sender_, false));
    return install(damage(share, silent));
  }

  /// Takes back everything that can be: the first error. What failed is tried again next time.
  Status end() {
    Status removed;
    if (installed_) {
      removed = netlink::removePacketPrograms(*receiver_.socket, receiver_.ifindex);
      installed_ = !removed.ok();
    }
    Status restored;
    if (computing_) {
      restored = netlink::setLeavesChecksums(sender_, leaves_);
      computing_ = !restored.ok();
    }
    return removed.ok() ? restored : removed;
  }

  /// Whether end() has something to take back.
  bool begun() const { return installed_ || computing_; }

  /// Whether the sender computes checksums now, so that damage can be seen.
  Result<bool> computed() const {
    ASSIGN_OR_RETURN(const bool leaves, netlink::leavesChecksums(sender_));
    return !leaves;
  }

 private:
  Status install(std::vector<bpf_insn> code) {
    const netlink::PacketProgram program{netlink::Passing::kReceived, std::move(code)};
    const Status status =
        netlink::addPacketPrograms(*receiver_.socket, receiver_.ifindex, std::span(&program, 1));
    installed_ = status.ok();
    return status;
  }

  netlink::LinkEnd sender_;
  netlink::LinkEnd receiver_;
  bool leaves_ = true;      ///< to go back to: the sender leaves checksums to its interface
  bool installed_ = false;  ///< the receiver runs a program of ours
  bool computing_ = false;  ///< the sender was told to compute checksums
};

/// A share of the packets of a link arrives damaged, so that the receiver's kernel sees it, or so
/// that nobody does. Evidence: of probe datagrams with a checksum this share arrives changed, with
/// a checksum that is wrong or right, and all packets of the link have one.
class Corrupt final : public Fault {
 public:
  Corrupt(const FaultParameters& parameters, const netlink::LinkTarget& target)
      : target_(target),
        share_(parameters.get<Percent>("percent").value / kWholeInPercent),
        silent_(parameters.get<std::string>("how") == "silent") {
    const auto& direction = parameters.get<std::string>("direction");
    if (direction != "in") ways_.push_back({"out", {target.nic, target.attachment}});
    if (direction != "out") ways_.push_back({"in", {target.attachment, target.nic}});
  }

  ~Corrupt() override {
    const Status status = revert();
    if (!status.ok()) spdlog::error("corrupt: {}", status.message());
  }

  Status prepare() override {
    RETURN_IF_ERROR(CrossingProbe::requireWhole(target_).withContext("corrupt"));
    for (Way& way : ways_) RETURN_IF_ERROR(way.damaged.prepare().withContext("corrupt"));
    return okStatus();
  }

  Status apply() override {
    probing_ = false;
    const Status status = transit(true, [&]() -> Status {
      for (Way& way : ways_) RETURN_IF_ERROR(way.damaged.begin(share_, silent_));
      return okStatus();
    });
    if (status.ok()) return okStatus();
    const Status undone = endAll();
    return undone.ok() ? status : status.withContext(undone.message());
  }

  Status step(TimePoint now) override {
    if (!probing_) RETURN_IF_ERROR(beginProbing());
    if (conclusive()) return okStatus();
    bool all_sent = true;
    for (Way& way : ways_) {
      RETURN_IF_ERROR(way.probe->step());
      all_sent = all_sent && way.probe->allSent();
    }
    for (Way& way : ways_) {  // read when it counts: it takes a while
      if (!all_sent || way.computed) continue;
      ASSIGN_OR_RETURN(way.computed, way.damaged.computed());
    }
    latest_ = now;
    if (all_sent && !reached_) reached_ = now;
    return okStatus();
  }

  Status revert() override {
    const auto begun = [](const Way& way) { return way.damaged.begun(); };
    if (std::ranges::none_of(ways_, begun)) return okStatus();
    return transit(false, [&] { return endAll(); });
  }

  std::string mechanism() const override {
    return "ethtool: the sender computes checksums; netlink: a program where packets arrive "
           "damages them (clsact, cls_bpf, eBPF)";
  }

  Duration evidenceBudget() const override {
    return Fault::evidenceBudget() + probesForShare(share_) * kTimeOfProbe;
  }

 protected:
  bool conclusive() const override {
    return probing_ && reached_ && latest_ - *reached_ >= kStill &&
           std::ranges::all_of(ways_, [&](const Way& way) {
             const CheckedCounts& counts = way.probe->counts();
             const int other = silent_ ? counts.wrong_checksum : counts.believed;
             // A full queue takes probes whatever the program does to them.
             return way.computed && other == 0 && 2 * arrived(way) >= way.probe->sent() &&
                    fitsShare(share_, arrived(way), hit(way));
           });
  }

  Evidence verdict() const override {
    if (!probing_) return {"corrupt", "probes across the link", "nothing was observed", false};
    std::string observed;
    for (const Way& way : ways_) {
      const CheckedCounts& counts = way.probe->counts();
      observed += fmt::format(
          "{}{}: the sender {} checksums; of {} probe datagrams {} arrived intact, {} changed with "
          "a wrong checksum, {} changed with a right one: {}",
          observed.empty() ? "" : "; ", way.name, way.computed ? "computes" : "leaves out",
          way.probe->sent(), counts.intact, counts.wrong_checksum, counts.believed,
          shareInWords("damaged", share_, arrived(way), hit(way)));
    }
    return {"corrupt", "probes across the link", observed, conclusive()};
  }

 private:
  struct Way {
    std::string_view name;
    DamagedWay damaged;
    std::optional<CheckedProbe> probe{};  // from the first strike on
    bool computed = false;
  };

  /// All ways, whatever becomes of the others: the first error.
  Status endAll() {
    Status first;
    for (Way& way : ways_) {
      const Status status = way.damaged.end();
      if (first.ok()) first = status;
    }
    return first;
  }

  int hit(const Way& way) const {
    const CheckedCounts& counts = way.probe->counts();
    return silent_ ? counts.believed : counts.wrong_checksum;
  }

  int arrived(const Way& way) const {
    const CheckedCounts& counts = way.probe->counts();
    return counts.intact + counts.wrong_checksum + counts.believed;
  }

  Status beginProbing() {
    for (Way& way : ways_) {
      way.computed = false;
      if (way.probe) {
        RETURN_IF_ERROR(way.probe->restart());
        continue;
      }
      ASSIGN_OR_RETURN(CheckedProbe probe, openProbe(way.name == "out"));
      way.probe.emplace(std::move(probe));
    }
    reached_.reset();
    probing_ = true;
    return okStatus();
  }

  Result<CheckedProbe> openProbe(bool out) {
    using Listening = CheckedProbe::Listening;
    netlink::Socket* const socket = target_.attachment.socket;
    const int probes = probesForShare(share_);
    if (out) {
      return CheckedProbe::open(target_.nic, {socket, target_.siblings.front()},
                                Listening::kLeaving, probes);
    }
    ASSIGN_OR_RETURN(const netlink::NetDevice port,
                     netlink::readNetDevice(*socket, target_.attachment.ifindex));
    return CheckedProbe::open({socket, port.bridge_ifindex}, target_.nic, Listening::kTakenIn,
                              probes);
  }

  netlink::LinkTarget target_;
  double share_;
  bool silent_;
  std::vector<Way> ways_;
  bool probing_ = false;  // since the last strike
  TimePoint latest_{};
  std::optional<TimePoint> reached_;  ///< when all probes had been sent
};

}  // namespace

constinit const FaultKind kCorruptKind{
    .name = "corrupt",
    .summary = "A share of the packets of one link arrives damaged.",
    .sees =
        "detected: retransmissions, as with loss. silent: nothing, but for results that are "
        "wrong. Both: the sender's kernel cuts and checks packets itself, which takes time",
    .evidence =
        "probe datagrams of the injector's own arrive changed, in this share, with a "
        "checksum that is wrong (detected) or right (silent), and the sender computes one "
        "for all packets",
    .undo =
        "the program is removed, and checksums are left to the interface again; both die with "
        "the namespaces",
    .parameters = kCorruptParameters,
    .signatures = kCorruptSignatures,
    .alone = true,
    .needs = {KernelMechanism::kPacketProgram},
    .make = makeOne<Corrupt>};

}  // namespace faultline::injector
