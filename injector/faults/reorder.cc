#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/crossing_probe.h"
#include "injector/faults/detour.h"
#include "injector/faults/fault_list.h"
#include "injector/faults/order_probe.h"
#include "injector/faults/port_program.h"
#include "injector/faults/share_proof.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/packet_program.h"

namespace faultline::injector {
namespace {

constexpr double kSmallestShare = 1;
// Of more, some would have nobody left to overtake them.
constexpr double kLargestShare = 75;
// step() comes every millisecond: a shorter delay would not be kept.
constexpr double kShortestDelay = 0.002;
constexpr double kLongestDelay = 0.1;

constexpr std::array kReorderParameters{
    ParameterSpec{"percent",
                  ParameterType::kPercent,
                  "",
                  "share of the packets that are delayed, at random; a packet is what the kernel "
                  "moves at once, up to 64 KiB of a TCP stream",
                  {},
                  kSmallestShare,
                  kLargestShare},
    ParameterSpec{"delay",
                  ParameterType::kDuration,
                  "5ms",
                  "for how long, at least; the injector looks once in a millisecond, so it is a "
                  "few more; those that follow in this time overtake it",
                  {},
                  kShortestDelay,
                  kLongestDelay},
    ParameterSpec{"direction", ParameterType::kEnum, "both", kWayMeaning, kWays},
};

/// A share of the packets of a link is delayed, so that those that follow overtake it. Evidence:
/// numbered probe frames; this share of them comes behind one that was sent later, and is under way
/// for so much longer.
class Reorder final : public Fault {
 public:
  Reorder(const FaultParameters& parameters, const netlink::LinkTarget& target)
      : target_(target),
        share_(parameters.get<Percent>("percent").value / kWholeInPercent),
        delay_(parameters.get<Duration>("delay")),
        program_(target) {
    const auto& direction = parameters.get<std::string>("direction");
    sides_.push_back({"out", netlink::Passing::kReceived, direction == "in" ? 0 : share_});
    sides_.push_back({"in", netlink::Passing::kSent, direction == "out" ? 0 : share_});
  }

  ~Reorder() override {
    const Status status = revert();
    if (!status.ok()) spdlog::error("reorder: {}", status.message());
  }

  Status prepare() override {
    RETURN_IF_ERROR(CrossingProbe::requireWhole(target_).withContext("reorder"));
    RETURN_IF_ERROR(openDetours());  // only to see that it can: others of this link have theirs
    const Status status = program_.tryOut(programs(0)).withContext("reorder");
    const Status closed = closeDetours();
    return status.ok() ? closed : status;
  }

  Status apply() override {
    applied_ = true;
    probing_ = false;
    for (Side& side : sides_) side.lost = 0;
    Status status = openDetours();
    if (status.ok()) status = transit(true, [&] { return program_.install(programs(1)); });
    if (status.ok()) return status;
    applied_ = false;  // install() leaves nothing behind
    (void)closeDetours();
    return status;
  }

  Status step(TimePoint now) override {
    RETURN_IF_ERROR(carry(now, now - delay_));
    if (!probing_) RETURN_IF_ERROR(beginProbing());
    if (conclusive()) return okStatus();
    for (Side& side : sides_) RETURN_IF_ERROR(side.probe->step(now));
    return okStatus();
  }

  /// First nothing is delayed any more; then what is delayed comes at once, and no sooner than it
  /// would have.
  Status revert() override {
    if (!applied_) return okStatus();
    RETURN_IF_ERROR(transit(false, [&] { return program_.remove(); }));
    applied_ = false;
    for (const TimePoint deadline = now() + kFlushBudget;;) {
      // What was just being diverted has arrived by then.
      ::poll(nullptr, 0, kLookAgainMs);
      RETURN_IF_ERROR(carry(now(), now()));
      if (std::ranges::all_of(
              sides_, [](const Side& side) { return !side.detour || side.detour->empty(); })) {
        return closeDetours();
      }
      if (now() >= deadline) {
        return errorf(Code::kInternal, "what was delayed does not go out");
      }
    }
  }

  std::string mechanism() const override {
    return "netlink: a program on the switch's port (clsact, cls_bpf, eBPF) diverts packets into a "
           "veth pair, where a packet socket keeps each for a time and sends it back";
  }

  /// The probes, those that follow them, and what may be in queues.
  Duration evidenceBudget() const override { return kProbing + 6 * delay_; }

 protected:
  bool conclusive() const override {
    return probing_ && std::ranges::all_of(sides_, [&](const Side& side) { return proven(side); });
  }

  Evidence verdict() const override {
    constexpr const char* kObserved = "order of probes across the link";
    if (!probing_) return {"reorder", kObserved, "nothing was observed", false};
    std::string observed;
    for (const Side& side : sides_) {
      const ProbeOrder& probe = side.probe->order();
      observed += fmt::format(
          "{}{}: of {} probes {} arrived, {} of them late behind a later one, {} sooner: {}",
          observed.empty() ? "" : "; ", side.name, probe.sent(), probe.arrived(), probe.late(),
          probe.passed(), shareInWords("late", side.share, probe.arrived(), probe.late()));
      if (side.share <= 0) continue;
      observed += fmt::format(", {:.1f} ms longer under way (asked: {:.1f} ms); {} found no room",
                              toMilliseconds(probe.delayed()), toMilliseconds(delay_), side.lost);
    }
    return {"reorder", kObserved, observed, conclusive()};
  }

 private:
  struct Side {
    const char* name;
    netlink::Passing passing;
    double share;
    std::unique_ptr<Detour> detour{};   // of a strike, where there is a share
    std::optional<OrderProbe> probe{};  // from the first strike on
    std::int64_t lost = 0;              // of the packets to be delayed, since the last one
  };
  static constexpr Duration kFlushBudget = 500ms;
  static constexpr Duration kProbing = 1s;
  // Of a direction that is left alone, fewer than of the smallest share that is believed: on a busy
  // machine one may have been overtaken on another processor, and have waited for so long.
  static constexpr double kNone = kSmallestShare / kWholeInPercent / 3;

  bool proven(const Side& side) const {
    const ProbeOrder& order = side.probe->order();
    if (!side.probe->done() || order.arrived() < order.sent() / 2) return false;
    if (side.share <= 0) return order.late() <= kNone * order.arrived();
    return fitsUnsureShare(side.share, order.arrived(), order.late(), order.passed()) &&
           side.lost == 0 && lastsAsAsked(*side.probe);
  }

  /// It begins and ends with a look, and a busy machine lets looks come late.
  bool lastsAsAsked(const OrderProbe& probe) const {
    const Duration delayed = probe.order().delayed();
    return delayed >= delay_ - probe.between() &&
           delayed <= probe.order().delayedByLooks() + delay_ / 2;
  }

  Status openDetours() {
    for (Side& side : sides_) {
      if (side.share <= 0 || side.detour) continue;
      ASSIGN_OR_RETURN(side.detour, Detour::make(target_.attachment, side.passing));
    }
    return okStatus();
  }

  Status closeDetours() {
    Status first;
    for (Side& side : sides_) {
      if (!side.detour) continue;
      if (const Status closed = side.detour->close(); first.ok()) first = closed;
      side.detour.reset();
    }
    return first;
  }

  Status carry(TimePoint now, TimePoint due) {
    for (Side& side : sides_) {
      if (!side.detour) continue;
      RETURN_IF_ERROR(side.detour->step(now, due));
      ASSIGN_OR_RETURN(const std::int64_t lost, side.detour->lost());
      side.lost += lost;
    }
    return okStatus();
  }

  /// `factor` 0: all is there, and nothing is done.
  std::vector<netlink::PacketProgram> programs(double factor) const {
    std::vector<netlink::PacketProgram> all;
    for (const Side& side : sides_) {
      if (!side.detour) continue;
      all.push_back(side.detour->divert(factor * side.share));
    }
    return all;
  }

  /// From the NIC to the switch itself, and from the switch itself to the NIC.
  Status beginProbing() {
    ASSIGN_OR_RETURN(
        const netlink::NetDevice port,
        netlink::readNetDevice(*target_.attachment.socket, target_.attachment.ifindex));
    const netlink::LinkEnd bridge{target_.attachment.socket, port.bridge_ifindex};
    for (Side& side : sides_) {
      if (side.probe) {
        side.probe->restart();
        continue;
      }
      const bool out = side.passing == netlink::Passing::kReceived;
      ASSIGN_OR_RETURN(OrderProbe probe,
                       OrderProbe::open(out ? target_.nic : bridge, out ? bridge : target_.nic,
                                        probesForShare(share_), delay_));
      side.probe.emplace(std::move(probe));
    }
    probing_ = true;
    return okStatus();
  }

  netlink::LinkTarget target_;
  double share_;
  Duration delay_;
  PortProgram program_;
  std::vector<Side> sides_;
  bool applied_ = false;
  bool probing_ = false;  // since the last strike
};

}  // namespace

constinit const FaultKind kReorderKind{
    .name = "reorder",
    .summary = "A share of the packets of one link is delayed, and comes behind those that follow.",
    .sees =
        "segments and datagrams out of order: acknowledgements that come twice, a slower stream, "
        "now and then something that is sent again without need",
    .evidence =
        "of numbered probe frames of the injector's own this share comes behind one that was sent "
        "later, by this delay",
    .undo =
        "the program on the switch's port is removed, what is delayed is sent, and the detour is "
        "deleted; all of it dies with the switch's namespace",
    .parameters = kReorderParameters,
    // Where half of it is late by 20 ms, a job may well think that nothing moves.
    .signatures = kAnySignatures,
    .alone = true,
    .damage = nothing,
    .needs = {KernelMechanism::kPacketProgram},
    .make = makeOne<Reorder>};

}  // namespace faultline::injector
