#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/control/interrupt.h"
#include "injector/fault.h"
#include "injector/netlink/socket.h"
#include "injector/safety/entry.h"
#include "injector/safety/host_fault.h"
#include "injector/safety/host_machine.h"
#include "injector/safety/journal.h"
#include "injector/safety/policy.h"

/// Strikes on this host's own interfaces, and what undoes those that were left.
namespace faultline::cli {

/// Names of the faults that a host can have.
std::vector<std::string_view> hostFaults();

/// Runs a command of the policy, without a shell, with these in its environment ("NAME=value").
safety::HostMachine::Run policyCommand(std::vector<std::string> environment);

/// ok, or that the right to change interfaces is missing, and how to get it: kPermissionDenied.
Status requireNetAdmin();

/// What came of a strike.
struct StrikeOutcome {
  Status status = okStatus();  ///< why nothing was struck, or it did not last
  injector::Evidence evidence;
  Duration lasted{};
  bool interrupted = false;
  Status undone = okStatus();
};

/// Strikes for `length`, unless it is interrupted, and undoes it, whatever happens. `lock` is the
/// journal's, given back once the entry is written. `allowed` is asked again right before anything
/// is changed: what was announced may have moved the way to this machine.
StrikeOutcome strike(netlink::Socket& socket, safety::Journal& journal, UniqueFd lock,
                     safety::Entry entry, safety::HostFault& fault, Duration length,
                     run::Interrupt& interrupt, safety::HostMachine::Allowed allowed);

/// Whether the holder of a strike hangs: its time is over, and what it has changed is in effect.
bool hangs(const safety::Journal& journal, const std::string& id);

/// Undoes an entry whose holder is gone, or closes one of another boot. To be called with the
/// journal's lock. kNotRestored when something is left.
Status undoLeft(netlink::Socket& socket, safety::Journal& journal, const safety::Entry& entry);

}  // namespace faultline::cli
