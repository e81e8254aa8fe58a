#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "wire/rank.h"

namespace faultline::workload {

/// What a process holds at one moment.
struct ResourceSample {
  std::int64_t memory = 0;  ///< resident bytes
  std::int64_t files = 0;   ///< open descriptors
};

/// Of this process, from /proc/self; nullopt where that cannot be read.
std::optional<ResourceSample> sampleResources();

/// What this process has spent since it began.
struct Effort {
  Duration cpu{};                 ///< processor time of all threads, in user and kernel mode
  std::uint64_t systemCalls = 0;  ///< that communication made
  Effort operator-(const Effort& before) const {
    return {cpu - before.cpu, systemCalls - before.systemCalls};
  }
};
Effort effortSoFar();

/// Follows what this process holds (at first, now, and at most) and spends. A look costs some 50
/// us.
class ResourceWatch {
 public:
  void look() {
    if (const auto sample = sampleResources()) add(*sample);
  }
  void add(const ResourceSample& sample);
  /// Adds to what was spent in measured iterations.
  void spend(const Effort& effort);
  /// The payload that this rank had sent in all, at this moment.
  void sent(std::uint64_t bytes);

  /// None: nothing was seen.
  std::optional<wire::Resources> use() const;

 private:
  std::optional<ResourceSample> first_;
  ResourceSample last_;
  ResourceSample most_;  // of each kind by itself
  Effort spent_;
  std::optional<std::uint64_t> sentBefore_;
  std::uint64_t sent_ = 0;
};

}  // namespace faultline::workload
