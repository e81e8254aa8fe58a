#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

/// A schedule that somebody wrote down, for every size of the data: its pieces consist of `chunks`
/// parts of the data that are as equal as possible. Immutable, safe to use from any thread.
class ScheduleSource {
 public:
  virtual ~ScheduleSource() = default;

  /// As its author calls it: any text.
  virtual std::string_view algorithm() const = 0;
  virtual Collective collective() const = 0;
  /// Of a Broadcast or Reduce: it is for this root alone.
  virtual int root() const = 0;
  virtual int ranks() const = 0;
  /// With fewer elements of data some chunks would be empty.
  virtual std::int64_t chunks() const = 0;
  /// Of all that is written: equal texts have equal ones.
  virtual std::uint64_t digest() const = 0;
  /// For so many elements of data per rank. Nothing here says that it is right (verifier.h).
  /// kInvalidArgument when what is written makes no schedule.
  virtual Result<std::unique_ptr<Schedule>> make(std::int64_t dataElements) const = 0;
};

/// Whether no chunk is empty, and the buffer is just as large as such data need: a collective with
/// an output of its own has only whole chunks.
inline bool fitsData(const ScheduleSource& source, std::int64_t dataElements) {
  return dataElements >= source.chunks() &&
         (!hasOutput(source.collective()) || dataElements % source.chunks() == 0);
}

}  // namespace faultline::schedule
