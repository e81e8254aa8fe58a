#pragma once

#include <cstdint>
#include <optional>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/netlink/address.h"
#include "injector/netlink/arp_probe.h"
#include "injector/netlink/interface_configuration.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// The NIC is switched off, is given another address of its subnet, and is switched on again by a
/// later step(); revert() does the same with the former address. Evidence: the switch's end has
/// lost its carrier, and somebody who asks by ARP is answered for the new address, by this NIC, and
/// not for the old one.
class AddressChange final : public Fault {
 public:
  AddressChange(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~AddressChange() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override {
    return "netlink: the NIC is set down, its address is replaced, and it is set up";
  }
  Duration evidenceBudget() const override;

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  Status switchOff();
  Status switchOn();
  Status awaitWhole();
  Status lookForAnswers(TimePoint now);
  Result<std::uint32_t> countLosses();

  netlink::LinkTarget target_;
  Duration down_time_;
  netlink::Ipv4Address usual_;
  netlink::Ipv4Address other_;
  netlink::MacAddress mac_{};
  netlink::InterfaceConfiguration configuration_;
  std::optional<netlink::ArpProbe> arp_;

  bool applied_ = false;
  std::optional<TimePoint> up_due_;
  std::uint32_t losses_before_ = 0;
  std::uint32_t losses_ = 0;
  TimePoint asked_{};
  int answers_new_ = 0;
  int answers_old_ = 0;
};

}  // namespace faultline::injector
