#include "injector/faults/address_change.h"

#include <arpa/inet.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include "injector/faults/fault_list.h"
#include "injector/faults/usual_rows.h"
#include "injector/netlink/interface.h"

namespace faultline::injector {
namespace {

constexpr std::array kAddressChangeParameters{
    ParameterSpec{"down",
                  ParameterType::kDuration,
                  "100ms",
                  "how long the port is down while its address changes",
                  {},
                  0.001,
                  kLongestSeconds},
};

}  // namespace

constinit const FaultKind kAddressChangeKind{
    .name = "address_change",
    .summary =
        "The port of one NIC goes down, and comes back with another address; when the fault "
        "ends, the same way back.",
    .sees = "a port event; nobody answers at the old address any more",
    .evidence =
        "the switch's end has lost its carrier, and then asks by ARP: the NIC answers for "
        "the new address and not for the old one",
    .undo = "the former address is set again; routes that were lost are put back",
    .parameters = kAddressChangeParameters,
    .signatures = kPortSignatures,
    .portEvents = PortEvents::kBriefly,
    .needs = {KernelMechanism::kPortState},
    .make = makeOne<AddressChange>};

namespace {

// The former address is lower in any sensible plan of addresses: the highest bit of the host part
// is free to tell the other one.
constexpr int kLongestPrefix = 28;
constexpr int kAddressBits = 32;

constexpr Duration kAskAgain = 5ms;
// An answer takes far less than a millisecond: who is silent so often does not have the address.
constexpr int kEnoughAnswers = 3;
constexpr Duration kAnswerBudget = 1s;
// As for a port that comes back.
constexpr Duration kAddressReturnBudget = 2s;

}  // namespace

AddressChange::AddressChange(const FaultParameters& parameters, const netlink::LinkTarget& target)
    : target_(target), down_time_(parameters.get<Duration>("down")) {}

AddressChange::~AddressChange() {
  const Status status = revert();
  if (!status.ok()) spdlog::error("address_change: {}", status.message());
}

Status AddressChange::prepare() {
  ASSIGN_OR_RETURN(const netlink::NetDevice nic,
                   netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
  ASSIGN_OR_RETURN(const netlink::NetDevice port,
                   netlink::readNetDevice(*target_.attachment.socket, target_.attachment.ifindex));
  ASSIGN_OR_RETURN(const auto addresses,
                   netlink::listAddresses(*target_.nic.socket, target_.nic.ifindex));
  if (!netlink::isOperational(nic)) {
    return errorf(Code::kUnavailable, "address_change: {} does not work even now", nic.name);
  }
  if (port.bridge_ifindex == 0) {
    return errorf(Code::kUnsupported,
                  "address_change: {} is not a port of a bridge, from which "
                  "one could ask for addresses",
                  port.name);
  }
  if (addresses.size() != 1 || addresses.front().prefix_length > kLongestPrefix) {
    return errorf(Code::kUnsupported,
                  "address_change: {} has {} IPv4 addresses; one is needed, in a subnet of at "
                  "least /{}",
                  nic.name, addresses.size(), kLongestPrefix);
  }
  usual_ = other_ = addresses.front();
  other_.binary ^= htonl(1U << (kAddressBits - 1 - usual_.prefix_length));
  mac_ = nic.mac;
  ASSIGN_OR_RETURN(configuration_,
                   netlink::InterfaceConfiguration::read(*target_.nic.socket, target_.nic.ifindex));
  ASSIGN_OR_RETURN(netlink::ArpProbe arp,
                   netlink::ArpProbe::open(*target_.attachment.socket, port.bridge_ifindex));
  arp_.emplace(std::move(arp));
  ASSIGN_OR_RETURN(losses_before_, countLosses());
  return okStatus();
}

Result<std::uint32_t> AddressChange::countLosses() {
  ASSIGN_OR_RETURN(const netlink::NetDevice port,
                   netlink::readNetDevice(*target_.attachment.socket, target_.attachment.ifindex));
  return port.carrier_down_count;
}

Status AddressChange::apply() {
  ASSIGN_OR_RETURN(losses_before_, countLosses());
  losses_ = 0;
  answers_new_ = answers_old_ = 0;
  applied_ = true;
  RETURN_IF_ERROR(switchOff());
  netlink::Socket& socket = *target_.nic.socket;
  RETURN_IF_ERROR(netlink::removeAddress(socket, target_.nic.ifindex, usual_));
  RETURN_IF_ERROR(
      netlink::addAddress(socket, target_.nic.ifindex, other_.toString(), other_.prefix_length));
  up_due_ = now() + down_time_;
  return okStatus();
}

Status AddressChange::switchOff() {
  return transit(true,
                 [&] { return netlink::setUp(*target_.nic.socket, target_.nic.ifindex, false); });
}

Status AddressChange::switchOn() {
  up_due_.reset();
  return transit(false,
                 [&] { return netlink::setUp(*target_.nic.socket, target_.nic.ifindex, true); });
}

Status AddressChange::step(TimePoint now) {
  if (up_due_ && now >= *up_due_) RETURN_IF_ERROR(switchOn());
  if (up_due_ || conclusive()) return okStatus();
  ASSIGN_OR_RETURN(const std::uint32_t losses, countLosses());
  losses_ = losses - losses_before_;
  return lookForAnswers(now);
}

Status AddressChange::lookForAnswers(TimePoint now) {
  ASSIGN_OR_RETURN(const std::vector<netlink::ArpAnswer> answers, arp_->answers());
  for (const netlink::ArpAnswer& answer : answers) {
    if (answer.address == other_.binary && answer.mac == mac_) ++answers_new_;
    if (answer.address == usual_.binary) ++answers_old_;
  }
  if (now < asked_ + kAskAgain) return okStatus();
  asked_ = now;
  RETURN_IF_ERROR(arp_->ask(usual_.binary));  // first: its answer would be the first to come
  return arp_->ask(other_.binary);
}

bool AddressChange::conclusive() const {
  return losses_ > 0 && answers_new_ >= kEnoughAnswers && answers_old_ == 0;
}

Evidence AddressChange::verdict() const {
  return {"address_change", "carrier of the switch's end, and ARP",
          fmt::format("the switch's port lost its carrier {} times; to who has {} the NIC gave {} "
                      "answers, to who has {} there were {}",
                      losses_, other_.toString(), answers_new_, usual_.toString(), answers_old_),
          conclusive()};
}

Duration AddressChange::evidenceBudget() const { return down_time_ + kAnswerBudget; }

Status AddressChange::revert() {
  if (!applied_) return okStatus();
  if (!up_due_) RETURN_IF_ERROR(switchOff());
  // Either may fail after an apply() that came half-way; what counts is what is there in the end.
  netlink::Socket& socket = *target_.nic.socket;
  (void)netlink::removeAddress(socket, target_.nic.ifindex, other_);
  (void)netlink::addAddress(socket, target_.nic.ifindex, usual_.toString(), usual_.prefix_length);
  RETURN_IF_ERROR(switchOn());
  RETURN_IF_ERROR(configuration_.restore(socket));
  applied_ = false;
  return awaitWhole();
}

Status AddressChange::awaitWhole() {
  netlink::Socket& socket = *target_.nic.socket;
  const TimePoint deadline = now() + kAddressReturnBudget;
  while (true) {
    ASSIGN_OR_RETURN(const netlink::NetDevice nic,
                     netlink::readNetDevice(socket, target_.nic.ifindex));
    ASSIGN_OR_RETURN(const auto addresses, netlink::listAddresses(socket, target_.nic.ifindex));
    ASSIGN_OR_RETURN(const int missing, configuration_.missing(socket));
    const bool right = addresses.size() == 1 && addresses.front() == usual_ && missing == 0;
    if (netlink::isOperational(nic) && right) return okStatus();
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded,
                    "address_change: {} is {} and has {} addresses; {} addresses or routes of "
                    "before are missing",
                    nic.name, netlink::isOperational(nic) ? "up" : "not operational",
                    addresses.size(), missing);
    }
    ::poll(nullptr, 0, kLookAgainMs);
  }
}

}  // namespace faultline::injector
