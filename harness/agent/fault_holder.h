#pragma once

#include <memory>

#include "base/status.h"
#include "harness/launch/message_channel.h"
#include "injector/fault.h"
#include "injector/netlink/socket.h"
#include "wire/agent.h"

namespace faultline::agent {

/// As a node makes it; `network`, which outlives it, is of its network namespace, in which
/// processes are looked for. An error when it has no such fault, or not with these parameters.
Result<std::unique_ptr<injector::Fault>> makeHeldFault(const wire::HeldFault& held,
                                                       netlink::Socket& network);

/// Keeps a fault, or why it could not be made, which then is each answer, for a controller, until
/// the channel closes; the fault is taken back with its object.
Status holdFault(launch::MessageChannel& controller,
                 Result<std::unique_ptr<injector::Fault>> fault);

/// What a child of the agent does: keeps one fault of injector/faults on its node, for a controller
/// elsewhere. It runs beside the programs, and not among them, so that it
/// sees all of them and is none. Takes the fault back when its channel closes. Needs the
/// descriptors of launch::Process. What it is told and says: wire/agent.h.
int faultHolderMain();

}  // namespace faultline::agent
