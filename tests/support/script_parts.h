#pragma once

#include "base/random.h"
#include "tests/support/channel_script.h"

// What scripts of seeds are made of.

namespace faultline::test {

inline constexpr Duration kBusy = 60ms;  // in which messages are posted and faults begin

inline Duration upTo(Random& random, Duration most) { return Duration(random.below(most.count())); }

/// What every script begins with: the seed of its world, rails, limits, times.
void addOptions(Random& random, SimOptions& options);
/// A process sends both ways, in messages of any size; now and then many small ones at once.
void addMessages(Random& random, Script& script);
/// Rails of different speed, which changes now and then.
void addRates(Random& random, Script& script);
/// `step`: how long the steps of a repair take.
Action randomFault(Random& random, int rails, Duration step);

}  // namespace faultline::test
