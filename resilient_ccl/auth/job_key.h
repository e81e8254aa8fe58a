#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace faultline::auth {

/// Fills `bytes` from the system's random number generator: good enough for keys.
void fillRandom(std::span<std::byte> bytes);

/// Overwrites bytes that nobody may find in memory later; no compiler leaves that out.
void wipe(std::span<std::byte> bytes);

/// A secret that some processes share and nobody else has: 128 bits. That of a job is made by
/// whoever starts the job, handed to each process with its configuration, never sent over a
/// network. A job that is started again gets another one, so that nothing of its past means
/// anything to it. Overwritten when it is no longer needed.
class JobKey {
 public:
  static constexpr std::size_t kBytes = 16;

  /// All bits zero, which every attacker knows: for jobs inside one process.
  JobKey() = default;
  /// Bytes that nobody without the job's secret can make.
  explicit JobKey(const std::array<std::byte, kBytes>& bytes) : bytes_(bytes) {}
  static JobKey random();
  JobKey(const JobKey&) = default;
  JobKey& operator=(const JobKey&) = default;
  ~JobKey() { wipe(bytes_); }

  /// 32 hexadecimal digits, for a configuration that travels by a private channel.
  std::string hex() const;
  /// kInvalidArgument, without the text, when it is not 32 hexadecimal digits.
  static Result<JobKey> fromHex(std::string_view text);

  const std::array<std::byte, kBytes>& bytes() const { return bytes_; }
  /// Takes equally long wherever they differ.
  friend bool operator==(const JobKey& one, const JobKey& other);

 private:
  std::array<std::byte, kBytes> bytes_{};
};

}  // namespace faultline::auth
