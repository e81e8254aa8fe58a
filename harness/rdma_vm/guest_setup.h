#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"

namespace faultline::rdma_vm {

/// What a guest is told about itself.
struct GuestSetup {
  int host = 0;
  int nics = 0;
  unsigned mtu = 0;  ///< of the rails
};

/// What a guest sees of one of its rails: what its own kernel says, in its words.
struct RailState {
  std::string link;      ///< operstate of the network interface: "up", "down", "missing"
  bool carrier = false;  ///< false also of an interface that is switched off
  std::string rdma;      ///< of the RDMA port: "4: ACTIVE", "1: DOWN", "missing"
  std::string physical;  ///< likewise: "5: LinkUp", "2: Polling", "3: Disabled"
};

nlohmann::json toJson(const GuestSetup& setup);
Result<GuestSetup> guestSetupFromJson(const nlohmann::json& json);
nlohmann::json toJson(const std::vector<RailState>& rails);
Result<std::vector<RailState>> railStatesFromJson(const nlohmann::json& json);

/// Makes the computer that this process runs on a host of a laboratory: its name, the names and
/// addresses of its NICs, an rxe device on each rail, all of them active. Inside a guest only.
Status setUpGuest(const GuestSetup& setup);

/// By rail.
std::vector<RailState> readRailStates(int rails);

}  // namespace faultline::rdma_vm
