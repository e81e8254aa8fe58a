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

/// The secret that the processes of one job share and nobody else has: 128 bits. Made by whoever
/// starts the job, handed to each process with its configuration, never sent over a network. A job
/// that is started again gets another one, so that nothing of its past means anything to it.
class JobKey {
 public:
  static constexpr std::size_t kBytes = 16;

  /// All bits zero, which every attacker knows: for jobs inside one process.
  JobKey() = default;
  /// Bytes that nobody without the job's secret can make.
  explicit JobKey(const std::array<std::byte, kBytes>& bytes) : bytes_(bytes) {}
  static JobKey random();

  /// 32 hexadecimal digits, for a configuration that travels by a private channel.
  std::string hex() const;
  /// kInvalidArgument, without the text, when it is not 32 hexadecimal digits.
  static Result<JobKey> fromHex(std::string_view text);

  const std::array<std::byte, kBytes>& bytes() const { return bytes_; }
  friend bool operator==(const JobKey&, const JobKey&) = default;

 private:
  std::array<std::byte, kBytes> bytes_{};
};

}  // namespace faultline::auth
