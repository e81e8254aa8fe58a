#include "injector/faults/rdma_throttle.h"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "injector/faults/fault_list.h"
#include "injector/faults/rdma_counters.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/root_queue.h"
#include "injector/netlink/shaper.h"
#include "injector/rdma/dcb.h"

namespace faultline::injector {
namespace {

constexpr std::array<std::string_view, 9> kTrafficClassNames{"all", "0", "1", "2", "3",
                                                             "4",   "5", "6", "7"};
constexpr std::array kRdmaThrottleParameters{
    ParameterSpec{"rate",
                  ParameterType::kRateOrPercent,
                  "",
                  "what is left of what the device can send: a rate, or a percentage of the link's "
                  "where its driver tells it",
                  {},
                  0.1,
                  100},
    ParameterSpec{"traffic_class", ParameterType::kEnum, "all",
                  "adapters only: the traffic class to be limited; all: each of the eight to this "
                  "rate",
                  kTrafficClassNames},
};

}  // namespace

constinit const FaultKind kRdmaThrottleKind{
    .name = "rdma_throttle",
    .summary = "An RDMA device sends slowly, and nothing else happens (a gray failure).",
    .sees = "nothing but time and counters",
    .evidence =
        "in software: bytes per second that leave the interface's queue while there is a "
        "backlog, by probe frames where there is no load; adapters: bytes per second that the "
        "port's counters tell, before and in the fault, under the job's own load",
    .undo =
        "in software: the queue is removed; adapters: the limits that were read before are "
        "written again",
    .parameters = kRdmaThrottleParameters,
    .target = TargetKind::kRdma,
    .unproven =
        "on adapters (DCB maxrate; proven on rxe): the messages are exact and tested, "
        "no adapter was measured",
    .makeForDevice = makeOne<RdmaThrottle>};

namespace {

// Of an interface whose driver does not tell a rate (virtio) this is certainly more.
constexpr BitsPerSecond kUnknownRate = 1'000'000'000'000;
constexpr std::uint32_t kThrottleMark = 0x7408;  // nobody counts these frames
constexpr netlink::MacAddress kNobodysAddress{0x02, 0xfa, 0x17, 0x00, 0x00, 0x00};
// A socket may have about 200 KiB under way, counted with the kernel's own overhead.
constexpr Bytes kBacklogOfSocket = 64 * 1024;
constexpr Bytes kMostProbeSockets = 16;
constexpr Duration kThrottlePatience = 500ms;
constexpr int kWindowsOfThrottle = 4;
// How long the load is looked at before an adapter is slowed down, and in the fault.
constexpr std::chrono::milliseconds kLoadWindow = 500ms;
constexpr Duration kAdapterPatience = 4s;

}  // namespace

RdmaThrottle::RdmaThrottle(const FaultParameters& parameters, const rdma::RdmaTarget& target)
    : target_(target),
      rate_(parameters.value("rate")),
      traffic_class_(rdma::trafficClassOf(parameters.get<std::string>("traffic_class"))) {}

RdmaThrottle::~RdmaThrottle() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("rdma_throttle: {}", status.message());
}

Status RdmaThrottle::prepare() {
  ASSIGN_OR_RETURN(rdma::TargetDevice device, rdma::TargetDevice::open(target_));
  ASSIGN_OR_RETURN(way_, rateMechanism(device.identity()));
  RETURN_IF_ERROR(device.readNetdev().status());
  RETURN_IF_ERROR(device.requireNotManagement());
  RETURN_IF_ERROR(device.requireActive());
  device_.emplace(std::move(device));
  if (onAdapter()) return prepareAdapter();
  if (traffic_class_) {
    return errorf(Code::kInvalidArgument,
                  "rdma_throttle: {} has no traffic classes, as adapters have, so that class {} of "
                  "it cannot be limited alone; leave traffic_class out",
                  netdev(), *traffic_class_);
  }
  const BitsPerSecond link = device_->linkRate();
  if (link == 0 && std::holds_alternative<Percent>(rate_)) {
    return errorf(
        Code::kInvalidArgument,
        "rdma_throttle: the driver of {} does not tell its rate, so {} of it is not known; "
        "give a rate, like 10Mbit",
        netdev(), formatParameter(rate_));
  }
  ASSIGN_OR_RETURN(plan_, planThrottle(link == 0 ? kUnknownRate : link, rate_));
  return okStatus();
}

Status RdmaThrottle::prepareAdapter() {
  ASSIGN_OR_RETURN(rates_before_, rdma::readMaxrates(device_->route(), netdev()));
  ASSIGN_OR_RETURN(rates_after_,
                   rdma::planMaxrates(rates_before_, rate_, traffic_class_, device_->linkRate()));
  constexpr BitsPerSecond kBitsOfUnit = 1000;
  const std::uint64_t limit = rates_after_[traffic_class_.value_or(0)];
  change_.emplace(static_cast<BitsPerSecond>(limit) * kBitsOfUnit);
  ASSIGN_OR_RETURN(const std::uint64_t bytes, sentBytes(*device_));
  const TimePoint start = now();
  ::poll(nullptr, 0, static_cast<int>(kLoadWindow.count()));
  ASSIGN_OR_RETURN(const std::uint64_t later, sentBytes(*device_));
  change_->setBefore(now() - start, later - bytes);
  return okStatus();
}

Status RdmaThrottle::apply() {
  RETURN_IF_ERROR(device_->findAgain());
  applied_ = true;
  probing_ = false;
  meter_ = plan_.meter();
  if (!onAdapter()) return transit(true, [&] { return installQueue(); });
  change_->restart();
  means_ = Means::kMaxrates;
  mechanism_ = fmt::format("DCB maxrate of {} (unproven on hardware): {}", netdev(),
                           rdma::formatMaxrates(rates_after_));
  return transit(true,
                 [&] { return rdma::writeMaxrates(device_->route(), netdev(), rates_after_); });
}

Status RdmaThrottle::installQueue() {
  Status status = netlink::installTokenBucket(device_->route(), ifindex(), plan_.after);
  if (status.ok()) {
    means_ = Means::kTokenBucket;
    mechanism_ = "netlink: a token bucket (tbf) at the root of " + netdev();
    return status;
  }
  if (status.code() != Code::kUnsupported) return status;
  status = netlink::installShaper(device_->route(), ifindex(), plan_.after);
  if (status.ok()) {
    means_ = Means::kShaper;
    mechanism_ = "netlink: a shaper (htb) at the root of " + netdev();
  }
  return status;
}

Result<RdmaThrottle::QueueState> RdmaThrottle::readQueue() {
  if (means_ == Means::kTokenBucket) {
    ASSIGN_OR_RETURN(const auto state, netlink::readRootQueue(device_->route(), ifindex()));
    return QueueState{state.sent_bytes, state.backlog};
  }
  ASSIGN_OR_RETURN(const auto state, netlink::readShaper(device_->route(), ifindex()));
  return QueueState{state.sent_bytes, state.backlog};
}

Status RdmaThrottle::step(TimePoint now) {
  if (means_ == Means::kNone || conclusive()) return okStatus();
  if (onAdapter()) {
    ASSIGN_OR_RETURN(const std::uint64_t bytes, sentBytes(*device_));
    change_->observe(now, bytes);
    return okStatus();
  }
  ASSIGN_OR_RETURN(const QueueState state, readQueue());
  meter_.observe(now, state.sent_bytes, state.backlog);
  return probing_ ? feed(state.backlog) : okStatus();
}

Status RdmaThrottle::demandEvidence() {
  if (onAdapter()) return okStatus();  // our frames would not pass where RDMA does
  probing_ = true;
  if (!probes_.empty()) return okStatus();
  const Bytes sockets =
      std::clamp(plan_.probe_backlog / kBacklogOfSocket + 1, Bytes{1}, kMostProbeSockets);
  for (Bytes index = 0; index < sockets; ++index) {
    ASSIGN_OR_RETURN(netlink::FrameSocket socket,
                     netlink::FrameSocket::open(device_->route(), ifindex(), kThrottleMark));
    probes_.push_back(std::move(socket));
  }
  return okStatus();
}

/// Sends frames, to nobody, until enough of them wait in the queue.
Status RdmaThrottle::feed(Bytes backlog) {
  for (const netlink::FrameSocket& probe : probes_) {
    while (backlog < plan_.probe_backlog) {
      ASSIGN_OR_RETURN(const bool sent, probe.send(kNobodysAddress, plan_.probe_frame));
      if (!sent) break;
      backlog += static_cast<Bytes>(plan_.probe_frame);
    }
  }
  return okStatus();
}

bool RdmaThrottle::conclusive() const {
  if (!applied_) return false;
  if (onAdapter()) return change_->proven();
  return proofOf(plan_, meter_.measured()) == ThrottleProof::kAsAsked;
}

Duration RdmaThrottle::evidenceBudget() const {
  return onAdapter() ? kAdapterPatience : kThrottlePatience + kWindowsOfThrottle * plan_.window;
}

std::string RdmaThrottle::describeQueue() const {
  return inWords(plan_, meter_.measured(), device_->linkRate() != 0) +
         (probing_ ? ", own probes" : "");
}

Evidence RdmaThrottle::verdict() const {
  if (!onAdapter()) {
    const bool slower = applied_ && proofOf(plan_, meter_.measured()) != ThrottleProof::kNothing;
    return {"rdma_throttle", "rate of leaving the queue under backlog", describeQueue(), slower};
  }
  return {
      "rdma_throttle", "bytes that the port counts",
      fmt::format("the port sent {} before, under the job's load, and {} in the fault{}; limits "
                  "were {}, are {} (unproven on hardware)",
                  formatRate(change_->before()),
                  change_->during() ? formatRate(*change_->during())
                                    : std::string("nothing that was measured"),
                  change_->onlySlower() ? ", which is slower than before; that the limit made "
                                          "it so slow is not shown"
                                        : "",
                  rdma::formatMaxrates(rates_before_), rdma::formatMaxrates(rates_after_)),
      conclusive()};
}

Status RdmaThrottle::remove() {
  switch (means_) {
    case Means::kNone:
      break;
    case Means::kTokenBucket:
      RETURN_IF_ERROR(netlink::removeRootQueue(device_->route(), ifindex()));
      break;
    case Means::kShaper:
      RETURN_IF_ERROR(netlink::removeShaper(device_->route(), ifindex()));
      break;
    case Means::kMaxrates:
      RETURN_IF_ERROR(rdma::writeMaxrates(device_->route(), netdev(), rates_before_));
      break;
  }
  means_ = Means::kNone;
  return okStatus();
}

Status RdmaThrottle::revert() {
  if (!applied_) return okStatus();
  if (means_ != Means::kNone) RETURN_IF_ERROR(transit(false, [&] { return remove(); }));
  if (!onAdapter()) {
    const auto left = netlink::readRootQueue(device_->route(), ifindex());
    if (left.ok()) {
      return errorf(Code::kNotRestored, "rdma_throttle: our queue is still at the root of {}",
                    netdev());
    }
    if (left.status().code() != Code::kNotFound) return left.status();
  }
  applied_ = false;
  return okStatus();
}

}  // namespace faultline::injector
