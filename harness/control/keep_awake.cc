#include "harness/control/keep_awake.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace faultline::run {
namespace {

constexpr const char* kDevice = "/dev/cpu_dma_latency";
constexpr std::string_view kOtherwise = "; write 'keep_awake: off' (--set noise.keep_awake=off)";

/// The driver of idle states; "none" or empty without one.
std::string idleDriver() {
  std::string driver;
  std::ifstream("/sys/devices/system/cpu/cpuidle/current_driver") >> driver;
  return driver;
}

}  // namespace

Result<UniqueFd> keepProcessorsAwake() {
  if (const std::string driver = idleDriver(); driver.empty() || driver == "none") {
    return errorf(Code::kUnsupported,
                  "noise.keep_awake: this kernel has no driver of idle states that could be asked "
                  "(/sys/devices/system/cpu/cpuidle/current_driver){}",
                  kOtherwise);
  }
  UniqueFd held(open(kDevice, O_WRONLY | O_CLOEXEC));
  const std::int32_t microseconds = 0;
  if (held && write(held.get(), &microseconds, sizeof microseconds) == sizeof microseconds) {
    return held;
  }
  const Status refused = Status::fromErrno(errno, fmt::format("hold {}", kDevice));
  return Status(refused.code(),
                fmt::format("noise.keep_awake: {} (it takes root, and not that of a "
                            "user namespace or container){}",
                            refused.message(), kOtherwise));
}

}  // namespace faultline::run
