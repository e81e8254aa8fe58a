#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "harness/command/recovery.h"
#include "harness/record/hang_proof.h"
#include "reports/result.h"
#include "wire/rank.h"

/// What the controller notes while a run goes on, in the order in which it does: what processes
/// say, and what it decides itself. The record of the run is made of these and nothing else, so
/// that the same events always give the same result; a transcript keeps them.
namespace faultline::run {

namespace event {

/// The run's time zero: all ranks are ready, or all programs run. Before that: when it was begun.
struct Started {
  TimePoint at{};
};

/// A rank said this.
struct Heard {
  int rank = 0;
  TimePoint at{};
  wire::FromRank message{};
};

/// A rank said that it goes on with those that are left; `fault`: what the job had lost them by.
struct Shrunk {
  int rank = 0;
  wire::Shrunk message{};
  std::optional<TimePoint> fault{};
};

/// The watchdog fired.
struct Hung {
  TimePoint at{};
  HangProof::Hang hang{};
};

/// The job died, and is restarted.
struct Crashed {
  std::string message{};
};

/// All ranks were killed, because of the fault at `fault`.
struct CutOff {
  TimePoint at{};
  TimePoint fault{};
};

/// What the job died of is mended: new ranks are started.
struct Repaired {
  TimePoint at{};
};

/// The new ranks are ready.
struct Reloaded {
  TimePoint at{};
};

/// The run ends before its work is done.
struct Failed {
  TimePoint at{};
  reports::RunStatus status = reports::RunStatus::kFailed;
  std::string message{};
};

/// A program that is not ours has told that it is in this iteration.
struct Progressed {
  int rank = 0;
  int iteration = 0;
  TimePoint at{};
};

/// One of them has ended. `output`: its folder, below that of the result.
struct ProgramEnded {
  int rank = 0;
  int node = 0;
  TimePoint at{};
  int code = 0;
  int signal = 0;  ///< 0: it ended by itself, with `code`
  std::string output{};
};

/// All that are left have a communicator again (strategy nccl, modes abort_reinit and shrink).
struct Rebuilt {
  command::Rebuildings::Rebuilding made{};
  std::optional<TimePoint> fault{};  ///< the latest before it
};

/// The numbers that they told (`metrics`), or why those are not known.
struct Told {
  std::map<std::string, reports::Quantity> numbers{};
  std::string problem{};
};

/// The run proves nothing, unless it failed.
struct Invalid {
  std::string because{};
};

}  // namespace event

using RunEvent =
    std::variant<event::Started, event::Heard, event::Shrunk, event::Hung, event::Crashed,
                 event::CutOff, event::Repaired, event::Reloaded, event::Failed, event::Progressed,
                 event::ProgramEnded, event::Rebuilt, event::Told, event::Invalid>;

}  // namespace faultline::run
