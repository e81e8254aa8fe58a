#include "resilient_ccl/auth/job_key.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <iterator>
#include <stdexcept>

#include "base/unique_fd.h"

namespace faultline::auth {

namespace {

/// Where a filter forbids getrandom. By then a machine that runs jobs has long gathered enough.
ssize_t readDevice(std::span<std::byte> bytes) {
  const UniqueFd device(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  return device ? ::read(device.get(), bytes.data(), bytes.size()) : -1;
}

}  // namespace

void fillRandom(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EINTR) got = readDevice(bytes);
    // Fails only where the system has no random numbers: nothing that a caller could handle.
    if (got == 0 || (got < 0 && errno != EINTR)) {
      throw std::runtime_error(
          "the system has no random numbers for a key: getrandom is refused, and /dev/urandom "
          "cannot be read");
    }
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void wipe(std::span<std::byte> bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

bool operator==(const JobKey& one, const JobKey& other) {
  return CRYPTO_memcmp(one.bytes_.data(), other.bytes_.data(), JobKey::kBytes) == 0;
}

JobKey JobKey::random() {
  JobKey key;
  fillRandom(key.bytes_);
  return key;
}

std::string JobKey::hex() const {
  std::string text;
  for (const std::byte byte : bytes_) {
    fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<int>(byte));
  }
  return text;
}

Result<JobKey> JobKey::fromHex(std::string_view text) {
  JobKey key;
  bool good = text.size() == 2 * kBytes;
  for (std::size_t i = 0; good && i < kBytes; ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + 2 * i;
    const auto parsed = std::from_chars(digits, digits + 2, value, 16);
    good = parsed.ec == std::errc() && parsed.ptr == digits + 2;
    key.bytes_[i] = static_cast<std::byte>(value);
  }
  if (good) return key;
  return errorf(Code::kInvalidArgument, "a job key has {} hexadecimal digits", 2 * kBytes);
}

}  // namespace faultline::auth
