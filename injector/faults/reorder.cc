#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/crossing_probe.h"
#include "injector/faults/fault_list.h"
#include "injector/faults/port_program.h"
#include "injector/faults/share_proof.h"
#include "injector/faults/still_watch.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/drop_filter.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/packet_program.h"
#include "injector/netlink/packet_socket.h"

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

// The mark of a packet on its way into the detour, and on its way back. No other packet has one:
// the kernel takes it away where a packet changes its namespace.
constexpr std::int32_t kIntoDetour = 0x0fa17d0c;
constexpr std::int32_t kOutOfDetour = 0x0fa17d0d;
constexpr auto kPacketMark = static_cast<std::int16_t>(offsetof(__sk_buff, mark));

/// Sends a share of the packets to another interface instead. What has been there passes.
std::vector<bpf_insn> divert(double share, int detour) {
  using Register = netlink::PacketCode::Register;
  constexpr Register kResult{0}, kFirst{1}, kSecond{2}, kBuffer{6}, kMark{7};
  return netlink::PacketCode()
      .copy(kBuffer, kFirst)
      .load(BPF_W, kResult, kBuffer, kPacketMark)
      .jumpIf(BPF_JEQ, kResult, kOutOfDetour, "back")
      .call(BPF_FUNC_get_prandom_u32)
      .jumpIf(BPF_JGE, kResult, netlink::shareOf32Bits(share), "pass")
      .set(kMark, kIntoDetour)
      .store(BPF_W, kBuffer, kPacketMark, kMark)
      .set(kFirst, detour)
      .set(kSecond, 0)
      .call(BPF_FUNC_redirect)
      .leave(TC_ACT_REDIRECT)
      .here("back")
      .set(kMark, 0)
      .store(BPF_W, kBuffer, kPacketMark, kMark)
      .here("pass")
      .leave(TC_ACT_UNSPEC)
      .finish();
}

/// Puts what comes out of the detour where it was taken; the rest is the kernel's own chatter on a
/// new interface, and is dropped.
std::vector<bpf_insn> putBack(int ifindex, netlink::Passing passing) {
  using Register = netlink::PacketCode::Register;
  constexpr Register kResult{0}, kFirst{1}, kSecond{2};
  return netlink::PacketCode()
      .load(BPF_W, kResult, kFirst, kPacketMark)
      .jumpIf(BPF_JNE, kResult, kOutOfDetour, "drop")
      .set(kFirst, ifindex)
      .set(kSecond, passing == netlink::Passing::kReceived ? BPF_F_INGRESS : 0)
      .call(BPF_FUNC_redirect)
      .leave(TC_ACT_REDIRECT)
      .here("drop")
      .leave(TC_ACT_SHOT)
      .finish();
}

Status setDetourOption(int fd, int level, int option, const void* value, socklen_t size) {
  if (::setsockopt(fd, level, option, value, size) == 0) return okStatus();
  return Status::fromErrno(errno, "set up the packet socket of a detour");
}

/// A way of packets around the switch's port that takes a given time. They go into one end of a
/// veth pair of its own, wait in this process, and come back the same way. Whole packets: what was
/// left to the NIC (segmentation, checksums) still is.
class Detour {
 public:
  /// Of the packets that pass `port` in this way. Nothing goes in until they are diverted to
  /// entrance().
  static Result<std::unique_ptr<Detour>> make(const netlink::LinkEnd& port,
                                              netlink::Passing passing) {
    std::unique_ptr<Detour> detour(new Detour(port, passing));
    RETURN_IF_ERROR(detour->open());
    return detour;
  }
  Detour(const Detour&) = delete;
  Detour& operator=(const Detour&) = delete;
  ~Detour() {
    const Status status = close();
    if (!status.ok()) spdlog::error("reorder: {}", status.message());
  }

  /// Nothing may be on its way through it any more.
  Status close() {
    if (!made_) return okStatus();
    made_ = false;
    return netlink::deleteNetDevice(*port_.socket, entrance());
  }

  int entrance() const { return kFirstIfindex + 4 * port_.ifindex + (received() ? 0 : 2); }

  /// Takes what has come, and sends back what came before `due`.
  Status step(TimePoint now, TimePoint due) {
    while (true) {
      frame_.resize(kLargestPacket);
      const ssize_t size = ::recv(fd_.get(), frame_.data(), frame_.size(), 0);
      if (size < 0 && (errno == EINTR || errno == ENETDOWN)) continue;
      if (size < 0 && errno == EAGAIN) break;
      if (size < 0) return Status::fromErrno(errno, "take a packet that is to be delayed");
      held_.push_back({now, {frame_.begin(), frame_.begin() + size}});
    }
    for (; !held_.empty() && held_.front().since <= due; held_.pop_front()) {
      const std::vector<char>& packet = held_.front().packet;
      if (::send(fd_.get(), packet.data(), packet.size(), 0) >= 0) continue;
      if (errno == EAGAIN || errno == ENOBUFS) break;
      return Status::fromErrno(errno, "send a packet that was delayed");
    }
    return okStatus();
  }

  bool empty() const { return held_.empty(); }

  /// Packets that found no room, since it was asked last.
  Result<std::int64_t> lost() {
    tpacket_stats stats{};
    socklen_t size = sizeof stats;
    if (::getsockopt(fd_.get(), SOL_PACKET, PACKET_STATISTICS, &stats, &size) != 0) {
      return Status::fromErrno(errno, "read what a detour has lost");
    }
    return std::int64_t{stats.tp_drops};
  }

 private:
  struct Held {
    TimePoint since;
    std::vector<char> packet;
  };
  // Far above what the kernel and the clusters of a bench give; four for each port.
  static constexpr int kFirstIfindex = 0x0fa10000;
  // A segment of 64 KiB with its headers, and what was left to the NIC (struct virtio_net_hdr).
  static constexpr std::size_t kLargestPacket = (64 << 10) + 512;
  // For as long as nobody looks: 32 MiB are 25 ms of 10 Gbit/s.
  static constexpr int kWaitingBytes = 32 << 20;

  Detour(const netlink::LinkEnd& port, netlink::Passing passing) : port_(port), passing_(passing) {}

  bool received() const { return passing_ == netlink::Passing::kReceived; }
  int farEnd() const { return entrance() + 1; }

  Status open() {
    netlink::Socket& socket = *port_.socket;
    const std::string name = fmt::format("fl{}{}", received() ? "o" : "i", port_.ifindex);
    // As large as any packet is allowed to be.
    constexpr unsigned kMtu = 65'535;
    RETURN_IF_ERROR(netlink::createVeth(
        socket, {.name = name + "a", .ifindex = entrance(), .mtu = kMtu}, socket.namespaceFd(),
        {.name = name + "b", .ifindex = farEnd(), .mtu = kMtu}));
    made_ = true;
    const netlink::PacketProgram back{netlink::Passing::kReceived,
                                      putBack(port_.ifindex, passing_)};
    RETURN_IF_ERROR(netlink::addPacketPrograms(socket, entrance(), std::span(&back, 1)));
    // The socket sees packets before filters do, and nobody else is to.
    constexpr netlink::DropRule kAll;
    RETURN_IF_ERROR(netlink::addDropRules(socket, farEnd(), std::span(&kAll, 1)));
    RETURN_IF_ERROR(openSocket());
    RETURN_IF_ERROR(netlink::setUp(socket, farEnd(), true));
    return netlink::setUp(socket, entrance(), true);
  }

  Status openSocket() {
    ASSIGN_OR_RETURN(const auto inside,
                     netlink::ScopedNamespace::enter(port_.socket->namespaceFd()));
    fd_ = UniqueFd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_) return Status::fromErrno(errno, "open the packet socket of a detour");
    constexpr int kOn = 1;
    RETURN_IF_ERROR(setDetourOption(fd_.get(), SOL_PACKET, PACKET_VNET_HDR, &kOn, sizeof kOn));
    RETURN_IF_ERROR(setDetourOption(fd_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kWaitingBytes,
                                    sizeof kWaitingBytes));
    RETURN_IF_ERROR(
        setDetourOption(fd_.get(), SOL_SOCKET, SO_MARK, &kOutOfDetour, sizeof kOutOfDetour));
    std::array<sock_filter, 4> onlyDiverted{
        sock_filter{
            BPF_LD | BPF_W | BPF_ABS, 0, 0,
            static_cast<std::uint32_t>(SKF_AD_OFF) + static_cast<std::uint32_t>(SKF_AD_MARK)},
        sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kIntoDetour},
        sock_filter{BPF_RET | BPF_K, 0, 0, kLargestPacket},
        sock_filter{BPF_RET | BPF_K, 0, 0, 0},
    };
    const sock_fprog filter{onlyDiverted.size(), onlyDiverted.data()};
    RETURN_IF_ERROR(
        setDetourOption(fd_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter));
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = farEnd();
    address.sll_protocol = htons(ETH_P_ALL);
    if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      return okStatus();
    }
    return Status::fromErrno(errno, "bind the packet socket of a detour");
  }

  netlink::LinkEnd port_;
  netlink::Passing passing_;
  bool made_ = false;
  UniqueFd fd_;
  std::vector<char> frame_;
  std::deque<Held> held_;
};

/// Numbered probe frames of bulk class from one interface to another one, and which of them came
/// behind one that was sent later.
class OrderProbe {
 public:
  static Result<OrderProbe> open(const netlink::LinkEnd& sender, const netlink::LinkEnd& listener,
                                 int frames, Duration delay) {
    ASSIGN_OR_RETURN(netlink::PacketSocket sending,
                     netlink::PacketSocket::open(*sender.socket, sender.ifindex, 0));
    // Those that the listener's interface sends itself are not asked for.
    ASSIGN_OR_RETURN(netlink::PacketSocket hearing,
                     netlink::PacketSocket::open(*listener.socket, listener.ifindex, kEthertype));
    OrderProbe probe(std::move(sending), std::move(hearing), frames, delay);
    RETURN_IF_ERROR(probe.restart());
    return probe;
  }

  Status restart() {
    mark_ = static_cast<std::uint32_t>(
        Random::mix(static_cast<std::uint64_t>(now().time_since_epoch().count())));
    sent_.clear();
    late_.clear();
    others_.clear();
    latest_ = -1;
    stepped_ = 0;
    return okStatus();
  }

  Status step(TimePoint now) {
    ++stepped_;
    looked_ = now;
    for (int burst = 0; burst < kFramesPerLook && !allSent(); ++burst) {
      const Frame frame{mark_, static_cast<std::uint32_t>(sent_.size())};
      ASSIGN_OR_RETURN(const bool sent, sender_.send(kEthertype, netlink::kBroadcastMac,
                                                     frame.data(), sizeof frame));
      if (!sent) break;
      sent_.push_back(now);
    }
    while (true) {
      Frame frame{};
      ASSIGN_OR_RETURN(const auto size, listener_.receive(frame.data(), sizeof frame));
      if (!size) return okStatus();
      if (*size != sizeof frame || frame[0] != mark_) continue;
      hear(static_cast<int>(frame[1]), now);
    }
  }

  /// Whether all has been sent, and none has come for longer than one can be delayed.
  bool done() const { return allSent() && looked_ - heard_ >= kStill + 2 * delay_; }

  /// Of those that are judged.
  int sent() const { return std::min(static_cast<int>(sent_.size()), frames_); }
  int arrived() const { return static_cast<int>(late_.size() + others_.size()); }
  int late() const { return static_cast<int>(late_.size()); }
  /// How much longer a late one was under way than another one: the difference of their medians.
  Duration delayed() const {
    return late_.empty() || others_.empty() ? Duration{} : median(late_) - median(others_);
  }
  /// Between two looks, on average: so exact are the times.
  Duration between() const {
    return stepped_ < 2 || sent_.empty() ? Duration{} : (looked_ - sent_.front()) / (stepped_ - 1);
  }

 private:
  using Frame = std::array<std::uint32_t, 2>;  // mark and number
  // The second of those for experiments in one's own network (IEEE 802); the first counts frames.
  static constexpr std::uint16_t kEthertype = 0x88b6;
  static constexpr int kFramesPerLook = 16;

  OrderProbe(netlink::PacketSocket sender, netlink::PacketSocket listener, int frames,
             Duration delay)
      : sender_(std::move(sender)),
        listener_(std::move(listener)),
        frames_(frames),
        delay_(delay) {}

  /// Behind those that are judged go others, for as long as one of them may need to overtake.
  bool allSent() const {
    const auto judged = static_cast<std::size_t>(frames_);
    return sent_.size() > judged && sent_.back() - sent_[judged - 1] >= 2 * delay_ + kStill;
  }

  void hear(int number, TimePoint now) {
    const bool overtaken = number < latest_;
    latest_ = std::max(latest_, number);
    heard_ = now;
    if (number >= frames_) return;
    (overtaken ? late_ : others_).push_back(now - sent_[static_cast<std::size_t>(number)]);
  }

  static Duration median(std::vector<Duration> times) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    return *middle;
  }

  netlink::PacketSocket sender_;
  netlink::PacketSocket listener_;
  int frames_;
  Duration delay_;
  std::uint32_t mark_ = 0;
  std::vector<TimePoint> sent_;   // by number
  std::vector<Duration> late_;    // under way, of those that were overtaken
  std::vector<Duration> others_;  // of those that were not
  int latest_ = -1;               // the highest number that has come
  int stepped_ = 0;
  TimePoint looked_{};
  TimePoint heard_{};
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
      const OrderProbe& probe = *side.probe;
      observed += fmt::format("{}{}: of {} probes {} arrived, {} of them behind a later one: {}",
                              observed.empty() ? "" : "; ", side.name, probe.sent(),
                              probe.arrived(), probe.late(),
                              shareInWords("late", side.share, probe.arrived(), probe.late()));
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
  // Of a direction that is left alone, fewer than of the smallest share that is believed: another
  // processor may have been quicker.
  static constexpr double kNone = kSmallestShare / kWholeInPercent / 3;

  bool proven(const Side& side) const {
    const OrderProbe& probe = *side.probe;
    if (!probe.done() || probe.arrived() < probe.sent() / 2) return false;
    if (side.share <= 0) return probe.late() <= kNone * probe.arrived();
    return fitsShare(side.share, probe.arrived(), probe.late()) && side.lost == 0 &&
           lastsAsAsked(probe);
  }

  /// Both ends of the time are seen at a look, and it ends with one.
  bool lastsAsAsked(const OrderProbe& probe) const {
    return probe.delayed() >= delay_ - probe.between() &&
           probe.delayed() <= delay_ + delay_ / 2 + 3 * probe.between();
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
      all.push_back({side.passing, divert(factor * side.share, side.detour->entrance())});
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
        RETURN_IF_ERROR(side.probe->restart());
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
