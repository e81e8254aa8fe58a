#pragma once

#include <functional>
#include <optional>

#include "base/clock.h"
#include "base/status.h"

namespace faultline::cli {

/// Goes on in a process of its own, so that what is changed from here on is taken back also when
/// this one is killed, by SIGKILL as well: the new one then gets a SIGTERM, for run::Interrupt, and
/// ends in order.
///
/// Returns twice. In the new process: nothing. In this one, when that has ended: its exit code, or
/// kNotRestored when it was killed itself. SIGINT, SIGTERM and SIGHUP are passed on meanwhile, as
/// one SIGTERM; the new process has a session of its own, so that what is for a whole group or
/// terminal does not strike both. To be called by the first thread, before there are others.
///
/// With `longest` it is watched: what is not over by then, as it was stopped or hangs, is killed.
/// So is what `overdue` says true of, which is asked a few times each second until `longest`.
Result<std::optional<int>> goOnInSeparateProcess(std::optional<Duration> longest = std::nullopt,
                                                 const std::function<bool()>& overdue = {});

}  // namespace faultline::cli
