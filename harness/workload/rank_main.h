#pragma once

namespace faultline::workload {

/// The program of one rank, started by the controller through launch::Process, which hands it the
/// descriptors and a RankConfig. Returns the exit code: 0 after "done", 1 after an error or when
/// the controller is gone.
///
/// Messages to the controller; every moment ("at", "start", ...) is the monotonic clock in
/// nanoseconds, null where there is none:
///
///   joined  at, load_ms, first_iteration        all ranks are there; what was loaded
///   begin   iteration, warmup, at               the timed part of an iteration starts
///   end     iteration, warmup, start, at, ms, wrong, checked, digest, exposed_ms, checkpointed,
///           checkpoint_ms                       after its checks; at: its last bucket was reduced
///   ready   at                                  warm-up is over on all ranks; waits for "start"
///   done    state_digest, failovers, failbacks, counters
///   error   code, message, failovers, failbacks, counters   (after "done": the goodbye failed)
///
/// Messages from it: "start"; "stop": all ranks end in order, with "done", before the same one of
/// the next iterations.
int rankMain();

}  // namespace faultline::workload
