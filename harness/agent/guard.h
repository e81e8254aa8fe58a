#pragma once

namespace faultline::agent {

/// What a child of the agent is for each job: the first process of one node's process namespace. It
/// starts the programs of its wire::GuardJob in the node's network, keeps what they print, and says
/// how they end. Being the first of its namespace, it takes everything with it that they have
/// started, in whatever session, when it ends: by itself, by `end`, when the controller dies, or
/// killed.
///
/// Needs the descriptors of Process and SpawnOptions::own_process_namespace. What it is told and
/// says: wire/guard.h.
int guardMain();

}  // namespace faultline::agent
