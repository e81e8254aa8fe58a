#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "harness/launch/message_channel.h"
#include "wire/agent.h"

namespace faultline::agent {

/// What the rails of this node are like now.
using LookAtRails = std::function<std::vector<wire::RailState>()>;

/// The agent of a node: starts programs, each job under a guard of its own (guard.h), and ranks of
/// ours; keeps faults, each in a holder of its own (fault_holder.h); and answers what its rails and
/// its clock are like. From wire::AgentSetup until the channel is lost, or it cannot go on, which
/// is the error, and told if somebody is there to hear it. A process that fails ends alone, and is
/// told of. To be called on the main thread: what it starts dies with the thread that started it.
/// What it is told and says: wire/agent.h.
Status serve(launch::MessageChannel& controller, const LookAtRails& rails);

/// What the hidden verb `agent` does: the agent of a node that is a network namespace of this
/// machine. Needs the descriptors of launch::Process. `agent --stdio`: stdioAgentMain().
int agentMain(int argc, char** argv);

/// The agent of a machine whose controller is at the other end of its standard input and output
/// (docs/hosts.md). It greets (wire/greeting.h), and ends, with all that it has started, with the
/// end of its input.
int stdioAgentMain();

}  // namespace faultline::agent
