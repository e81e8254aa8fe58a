#include "harness/workload/resource_watch.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace faultline::workload {

std::optional<ResourceSample> sampleResources() {
  ResourceSample sample;
  std::int64_t pages = 0;
  // proc(5): all pages of the process, then those that are resident.
  std::ifstream statm("/proc/self/statm");
  if (!(statm >> pages >> pages)) return std::nullopt;
  sample.memory = pages * ::sysconf(_SC_PAGESIZE);
  std::error_code error;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error)) {
    ++sample.files;
  }
  if (error) return std::nullopt;
  --sample.files;  // the look itself
  return sample;
}

void ResourceWatch::add(const ResourceSample& sample) {
  if (!first_) first_ = sample;
  last_ = sample;
  most_.memory = std::max(most_.memory, sample.memory);
  most_.files = std::max(most_.files, sample.files);
}

void ResourceWatch::addTo(nlohmann::json& message) const {
  if (!first_) return;
  message["resources"] = {{"memory_start", first_->memory}, {"memory_end", last_.memory},
                          {"memory_max", most_.memory},     {"files_start", first_->files},
                          {"files_end", last_.files},       {"files_max", most_.files}};
}

}  // namespace faultline::workload
