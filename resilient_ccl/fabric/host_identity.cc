#include "resilient_ccl/fabric/host_identity.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>

namespace faultline::fabric {

std::string hostIdentity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network {};
  if (boot.empty() || stat("/proc/thread-self/ns/net", &network) != 0) return "";
  return fmt::format("{}/{:x}", boot, network.st_ino);
}

std::uint64_t fingerprintOf(std::string_view identity) {
  if (identity.empty()) return 0;
  constexpr std::uint64_t kBasis = 0xcbf29ce484222325, kPrime = 0x100000001b3;
  std::uint64_t sum = kBasis;
  for (const char c : identity) sum = (sum ^ static_cast<unsigned char>(c)) * kPrime;
  return sum;
}

}  // namespace faultline::fabric
