#pragma once

namespace faultline::launch {

/// What the hidden verb `guard` does: the first process of one node's process namespace. It starts
/// the programs of its GuardJob in the node's network, keeps what they print, and says how they
/// end. Being the first of its namespace, it takes everything with it that they have started, in
/// whatever session, when it ends: by itself, by `end`, when the controller dies, or killed.
///
/// Needs the descriptors of Process and SpawnOptions::own_process_namespace. Messages that it
/// sends:
///   {type: started}                              all programs run
///   {type: ended, program, at, code, signal}     one has ended; `at` in ns of the monotonic clock
///   {type: finished, cut: [path]}                all have, nothing of them is left, and what they
///                                                printed is in the files, but for those in `cut`
///   {type: error, code, message}                 it cannot do its work, and ends
/// that it understands:
///   {type: end, grace_ms}                        SIGTERM to all processes, and SIGKILL after that
int guardMain();

}  // namespace faultline::launch
