#include <linux/pkt_cls.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/crossing_probe.h"
#include "injector/faults/fault_list.h"
#include "injector/faults/port_program.h"
#include "injector/faults/share_proof.h"
#include "injector/faults/still_watch.h"
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
class Duplicate final : public Fault {
 public:
  Duplicate(const FaultParameters& parameters, const netlink::LinkTarget& target)
      : target_(target), program_(target) {
    const double share = parameters.get<Percent>("percent").value / kWholeInPercent;
    const auto& direction = parameters.get<std::string>("direction");
    out_ = direction == "in" ? 0 : share;
    in_ = direction == "out" ? 0 : share;
  }

  ~Duplicate() override {
    const Status status = revert();
    if (!status.ok()) spdlog::error("duplicate: {}", status.message());
  }

  Status prepare() override {
    RETURN_IF_ERROR(CrossingProbe::requireWhole(target_).withContext("duplicate"));
    return program_.tryOut(programs(0)).withContext("duplicate");
  }

  Status apply() override {
    applied_ = true;
    probing_ = false;
    const Status status = transit(true, [&] { return program_.install(programs(1)); });
    if (!status.ok()) applied_ = false;  // install() leaves nothing behind
    return status;
  }

  Status step(TimePoint now) override {
    if (!probing_) RETURN_IF_ERROR(beginProbing());
    if (conclusive()) return okStatus();
    RETURN_IF_ERROR(probe_->step());
    latest_ = now;
    const bool there = probe_->allSent() && probe_->arrived() > 0 && probe_->control() > 0;
    if (there && !reached_) reached_ = now;
    return okStatus();
  }

  Status revert() override {
    if (!applied_) return okStatus();
    RETURN_IF_ERROR(transit(false, [&] { return program_.remove(); }));
    applied_ = false;
    return okStatus();
  }

  std::string mechanism() const override { return PortProgram::kMechanism; }

 protected:
  bool conclusive() const override {
    return probing_ && reached_ && latest_ - *reached_ >= kStill && fits(out_, probe_->out()) &&
           fits(in_, probe_->in());
  }

  Evidence verdict() const override {
    if (!probing_) return {"duplicate", "probes across the link", "nothing was observed", false};
    const int sent = probe_->sent();
    return {
        "duplicate", "probes across the link",
        fmt::format("of {} probes in each direction {} left the switch by another port: {}; {} "
                    "left it towards the NIC: {}",
                    sent, probe_->out(), shareInWords("twice", out_, sent, probe_->out() - sent),
                    probe_->in(), shareInWords("twice", in_, sent, probe_->in() - sent)),
        conclusive()};
  }

 private:
  /// Without a share, nothing comes twice, and a queue may have dropped some.
  bool fits(double share, int passed) const {
    const int sent = probe_->sent();
    if (share <= 0) return passed > 0 && passed <= sent;
    // Of copies as of others: there are 1 + share times as many as probes.
    return fitsShare(share, sent, passed - sent, {.fewer = kQueueShare * (1 + share)});
  }

  /// `factor` 0: all is there, and nothing is done.
  std::vector<netlink::PacketProgram> programs(double factor) const {
    std::vector<netlink::PacketProgram> all;
    for (const netlink::Passing passing : {netlink::Passing::kReceived, netlink::Passing::kSent}) {
      const double share = passing == netlink::Passing::kReceived ? out_ : in_;
      if (share <= 0) continue;
      all.push_back({passing, duplicate(factor * share, target_.attachment.ifindex, passing)});
    }
    return all;
  }

  Status beginProbing() {
    if (probe_) {
      RETURN_IF_ERROR(probe_->restart());
    } else {
      const int probes = std::max(probesForShare(out_), probesForShare(in_));
      ASSIGN_OR_RETURN(CrossingProbe probe, CrossingProbe::open(target_, probes));
      probe_.emplace(std::move(probe));
    }
    reached_.reset();
    probing_ = true;
    return okStatus();
  }

  netlink::LinkTarget target_;
  double out_ = 0;
  double in_ = 0;
  PortProgram program_;
  bool applied_ = false;

  std::optional<CrossingProbe> probe_;  // from the first strike on
  bool probing_ = false;                // since the last one
  TimePoint latest_{};
  std::optional<TimePoint> reached_;  ///< when the probes had left the NIC and the switch
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
    .make = makeOne<Duplicate>};

}  // namespace faultline::injector
