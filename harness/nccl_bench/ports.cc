#include "harness/nccl_bench/ports.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/unique_fd.h"

namespace faultline::nccl_bench {

bool anyPortDown(std::span<const std::string> interfaces) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return std::ranges::any_of(interfaces, [&](const std::string& name) {
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    constexpr int kUsable = IFF_UP | IFF_RUNNING;
    return ::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0 ||
           (request.ifr_flags & kUsable) != kUsable;
  });
}

}  // namespace faultline::nccl_bench
