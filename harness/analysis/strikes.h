#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/result.h"

namespace faultline::run {

/// Strikes that come at a time may come so much earlier or later than in another run of the block.
inline constexpr double kStartToleranceMs = 50;
/// Strikes in the middle of an iteration may differ by so many points of its progress.
inline constexpr double kProgressTolerancePoints = 10;
/// How long they last may differ by this share of what was asked, or by kLengthToleranceMs if that
/// is more.
inline constexpr double kLengthToleranceShare = 0.1;
inline constexpr double kLengthToleranceMs = 50;

/// Compares what the strategies of each block were struck by. Pure.
///
/// A difference makes the block void where it is in the number of strikes or of losses (of what
/// flaps): then the strategies did not have the same fault. Losses are compared with what the
/// scenario asks for, too. A difference is a warning where a strike came at another time, in
/// another iteration, at another progress of it, or lasted longer, by more than the tolerances.
///
/// Only runs that did their work to the end are compared. The length and the losses of a strike
/// that ended with its run are not: how long a run takes depends on the strategy.
std::vector<reports::StrikeDifference> compareStrikes(std::span<const reports::Run> runs);

/// Sets Run::void_because in each run of the blocks that these make void.
void markVoidBlocks(std::span<const reports::StrikeDifference> differences,
                    std::span<reports::Run> runs);

/// Sentences for people; empty where there is no difference.
std::vector<std::string> inWords(std::span<const reports::StrikeDifference> differences);

}  // namespace faultline::run
