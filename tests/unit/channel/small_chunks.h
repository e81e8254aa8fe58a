#pragma once

#include <gtest/gtest.h>

#include "tests/support/sim_world.h"

/// For tests that count what each rail carries, chunk by chunk.
namespace faultline::test {

/// Of a message a rail carries many of them.
inline constexpr Bytes kChunk = 8 << 10;

/// Rails whose receiver places every byte.
inline SimOptions smallChunks(int rails, channel::Policy policy) {
  SimOptions options;
  options.link.rails = rails;
  options.link.policy = policy;
  options.link.chunkBytes = kChunk;
  options.lateWrites = false;
  return options;
}

/// Rails that take as they are acknowledged.
inline SimOptions pulling(int rails) { return smallChunks(rails, channel::Policy::kPull); }

/// Keeps more than all windows waiting for so long.
inline void load(SimWorld& world, Duration time, Bytes backlog = 4 << 20) {
  constexpr Bytes kMessage = 512 << 10;
  for (const TimePoint end = world.clock().now() + time; world.clock().now() < end;) {
    while ((world.posted() - world.completed()) * kMessage < backlog) world.message(0, kMessage);
    world.run(5ms);
  }
}

/// All that was posted has come, and nothing is wrong.
inline void expectWhole(SimWorld& world) {
  world.run(1s);  // what nobody waits for has come in by then
  world.checkMemory();
  for (const auto& problem : world.problems()) ADD_FAILURE() << problem;
  EXPECT_EQ(world.completed(), world.posted());
}

}  // namespace faultline::test
