#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "injector/fault_kind.h"
#include "injector/netlink/socket.h"
#include "injector/safety/blast_radius.h"
#include "injector/safety/host_fault.h"
#include "injector/safety/journal.h"
#include "injector/safety/policy.h"
#include "injector/safety/target.h"

/// Strikes on this host's own interfaces: what is planned, who may, and what holds them.
namespace faultline::strike {

/// Names of the faults that a host can have.
std::vector<std::string_view> hostFaults();

/// ok, or that the right to change interfaces is missing, and how to get it: kPermissionDenied.
Status requireNetAdmin();

/// What somebody wants.
struct Order {
  const injector::FaultKind* kind = nullptr;
  std::map<std::string, std::string> parameters{};  ///< as written
  safety::Wish target{};
  Duration length{};                ///< what the policy is asked about, and the journal says
  std::vector<std::string> keep{};  ///< addresses that must stay within reach
};

/// Who wants it.
struct Asker {
  std::string user{};
  std::string job{};  ///< "job 17", "user alice": whose strikes are counted together
  pid_t process = 0;  ///< whose ssh session is not to be cut off; 0: that of this process
  /// Of the fault service: held against the policy's users and groups. Nothing: he does it himself.
  std::optional<safety::Caller> caller{};
};

struct Files {
  std::string policy{safety::kPolicyPath};
  std::string journal{safety::kJournalPath};
};

/// An order, and what it means on this host now.
struct Plan {
  Order order{};
  std::map<std::string, std::string> texts{};  ///< parameters, with a host's defaults
  injector::FaultParameters parameters{};
  safety::HostFault fault{};
  safety::Target target{};
  safety::BlastRadius radius{};
};

Result<Plan> makePlan(const Order& order, netlink::Socket& socket);

/// kPermissionDenied, with a policy to start from, where there is none.
Result<safety::Policy> policyFor(const Files& files, std::string_view interface,
                                 std::string_view kind);

/// What must not be cut off, whatever a policy says: kPermissionDenied.
Status refuseManagement(netlink::Socket& socket, const safety::Target& target,
                        const safety::Policy& policy, const std::vector<std::string>& keep,
                        pid_t asker);

/// Whether policy and management path allow it, with what is held already.
Status allowed(netlink::Socket& socket, const safety::Target& target, std::string_view kind,
               Duration length, const safety::Policy& policy, const std::vector<std::string>& keep,
               const safety::Kept& kept, const Asker& asker);

/// A name for a strike that no other one has.
std::string newId();

/// The entry of a plan that is about to be carried out by this process.
safety::Entry entryOf(const Plan& plan, const safety::Policy& policy, const Asker& asker,
                      const std::string& id);

}  // namespace faultline::strike
