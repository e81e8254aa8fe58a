#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/scenario/scenario.h"
#include "harness/workload/data.h"
#include "resilient_ccl/comm/communicator.h"

namespace faultline::workload {

/// The timed part of one iteration.
struct IterationTime {
  TimePoint start;
  TimePoint end;  ///< computing was over and the last result was there
  /// How long computing stood still for communication, by model::Phase; empty: it is not known.
  std::vector<Duration> exposed{};
};

/// What the checks of one iteration's results found.
struct JobCheck {
  std::int64_t wrong = 0;
  /// Elements that were compared with the value they must have; random data have no such values,
  /// only elements that were never written are seen in them.
  std::int64_t checked = 0;
  std::string digest;  ///< of the whole result, for random data; else empty
};

/// A workload on one rank, iteration by iteration. Not thread-safe.
class Job {
 public:
  /// Of an iteration: warm-up and measured ones count from 0 each.
  struct Number {
    std::uint64_t index = 0;
    bool warmup = false;
  };

  virtual ~Job() = default;

  virtual std::uint64_t warmups() const = 0;
  virtual std::uint64_t iterations() const = 0;

  /// Makes what it needs of a communicator of all ranks; a collective call, once before the first
  /// iteration.
  virtual Status join(comm::Communicator& /*communicator*/) { return okStatus(); }

  /// Only these of the ranks take part from now on, this one among them. kUnsupported: it needs
  /// all.
  virtual Status goOnWith(std::span<const int> ranks) = 0;

  /// Makes the input of an iteration, and poisons what it is to write.
  virtual void prepare(const Number& number, const DataKey& key) = 0;
  /// Does what was prepared; returns when it is done, or with the first error. `started` is called
  /// with the start time, before anything is sent.
  virtual Result<IterationTime> run(comm::Communicator& communicator,
                                    const std::function<void(TimePoint)>& started) = 0;
  /// Whether what was run should be prepared and run once more, untold, because it was no measure
  /// of anything yet: a planner was trying something. The same on all ranks.
  virtual bool runsAgain() = 0;
  /// Changes one element of the result: the self-test of `check`. Nothing where there is none.
  virtual void corruptResult(std::uint64_t seed) = 0;
  /// Looks at every element of the result of the preparation with the same key.
  virtual JobCheck check(const DataKey& key) const = 0;

  /// A measured iteration is over: its results change the state.
  virtual void step() = 0;
  /// What a restart needs.
  virtual std::span<const std::byte> state() const = 0;
  /// False, and nothing changes, when the size is another.
  virtual bool restoreState(std::span<const std::byte> state) = 0;
};

}  // namespace faultline::workload
