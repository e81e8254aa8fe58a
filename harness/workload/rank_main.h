#pragma once

namespace faultline::workload {

/// The program of one rank, started by the controller through launch::Process, which hands it the
/// descriptors and a RankConfig. Returns the exit code: 0 after wire::Done, 1 after an error or
/// when the controller is gone.
///
/// What it says, and is told after its configuration: wire/rank.h.
int rankMain();

}  // namespace faultline::workload
