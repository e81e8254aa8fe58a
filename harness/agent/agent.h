#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "harness/launch/message_channel.h"
#include "wire/guest.h"

namespace faultline::agent {

/// What the rails of this node are like now.
using LookAtRails = std::function<std::vector<wire::RailState>()>;

/// The agent of a node: starts programs, each job under a guard of its own (guard.h), keeps faults,
/// each in a holder of its own (fault_holder.h), and answers what its rails and its clock are like.
/// Until the channel is lost, which is the error. A guard or a holder that fails ends alone, and is
/// told of. To be called on the main thread: what it starts dies with the thread that started it.
/// What it is told and says: wire/guest.h.
Status serve(launch::MessageChannel& controller, const LookAtRails& rails);

}  // namespace faultline::agent
