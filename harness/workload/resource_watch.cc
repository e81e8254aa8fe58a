#include "harness/workload/resource_watch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/system_calls.h"

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

Effort effortSoFar() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto time = [](const timeval& of) {
    return Duration(std::chrono::seconds(of.tv_sec)) + std::chrono::microseconds(of.tv_usec);
  };
  return {time(used.ru_utime) + time(used.ru_stime), systemCallsMade()};
}

void ResourceWatch::spend(const Effort& effort) {
  spent_.cpu += effort.cpu;
  spent_.systemCalls += effort.systemCalls;
}

void ResourceWatch::sent(std::uint64_t bytes) {
  if (!sentBefore_) sentBefore_ = bytes;
  sent_ = bytes - *sentBefore_;
}

void ResourceWatch::add(const ResourceSample& sample) {
  if (!first_) first_ = sample;
  last_ = sample;
  most_.memory = std::max(most_.memory, sample.memory);
  most_.files = std::max(most_.files, sample.files);
}

std::optional<wire::Resources> ResourceWatch::use() const {
  if (!first_) return std::nullopt;
  return wire::Resources{.memoryStart = first_->memory,
                         .memoryEnd = last_.memory,
                         .memoryMax = most_.memory,
                         .filesStart = static_cast<int>(first_->files),
                         .filesEnd = static_cast<int>(last_.files),
                         .filesMax = static_cast<int>(most_.files),
                         .cpu = spent_.cpu,
                         .systemCalls = static_cast<std::int64_t>(spent_.systemCalls),
                         .sent = static_cast<Bytes>(sent_)};
}

}  // namespace faultline::workload
