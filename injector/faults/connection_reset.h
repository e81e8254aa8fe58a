#pragma once

#include <optional>
#include <set>
#include <vector>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/netlink/link_target.h"
#include "injector/netlink/segment_watch.h"
#include "injector/netlink/tcp_connections.h"

namespace faultline::injector {

/// TCP connections that are bound to the NIC, or come from its address, end, in one of two ways;
/// the port lives on. It strikes once: connections that are made while it lasts are left alone.
/// Evidence: the segment that ends each connection has passed the switch's port, and the kernel no
/// longer lists it as established.
class ConnectionReset final : public Fault {
 public:
  ConnectionReset(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~ConnectionReset() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override;

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  Result<std::vector<netlink::TcpConnection>> ownConnections();
  Status endSending(const std::vector<netlink::TcpConnection>& connections);

  netlink::LinkTarget target_;
  bool half_close_;
  bool all_;
  bool applied_ = false;

  std::optional<netlink::TcpConnections> connections_;
  std::optional<netlink::SegmentWatch> watch_;
  std::set<netlink::TcpEnds> victims_;      ///< from the node's end
  std::set<netlink::TcpEnds> seen_;         ///< of them, those whose end passed the switch
  int fins_ = 0;                            ///< of those, how many with a FIN first
  std::set<netlink::TcpEnds> established_;  ///< of them, those that the kernel still has
  bool carrier_ = false;
};

}  // namespace faultline::injector
