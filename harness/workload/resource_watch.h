#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

namespace faultline::workload {

/// What a process holds at one moment.
struct ResourceSample {
  std::int64_t memory = 0;  ///< resident bytes
  std::int64_t files = 0;   ///< open descriptors
};

/// Of this process, from /proc/self; nullopt where that cannot be read.
std::optional<ResourceSample> sampleResources();

/// Follows what this process holds: at first, now, and at most. A look costs some 50 us.
class ResourceWatch {
 public:
  void look() {
    if (const auto sample = sampleResources()) add(*sample);
  }
  void add(const ResourceSample& sample);

  /// Adds "resources" to a message, when anything was seen.
  void addTo(nlohmann::json& message) const;

 private:
  std::optional<ResourceSample> first_;
  ResourceSample last_;
  ResourceSample most_;  // of each kind by itself
};

}  // namespace faultline::workload
