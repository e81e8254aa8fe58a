#include "resilient_ccl/fabric/port_sight.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

namespace faultline::fabric {
namespace {

std::optional<long> readNumber(int fd) {
  std::array<char, 24> text{};
  if (::pread(fd, text.data(), text.size() - 1, 0) <= 0) return std::nullopt;
  return std::strtol(text.data(), nullptr, 10);
}

UniqueFd openIn(const UniqueFd& sysfs, const std::string& device, const char* file) {
  const std::string path = "class/net/" + device + "/" + file;
  return UniqueFd(::openat(sysfs.get(), path.c_str(), O_RDONLY | O_CLOEXEC));
}

bool shows(const UniqueFd& sysfs, const std::string& device) {
  const UniqueFd index = openIn(sysfs, device, "ifindex");
  return index && readNumber(index.get()) == if_nametoindex(device.c_str());
}

/// A sysfs of this namespace that is mounted nowhere (Linux 5.2; the numbers are those of
/// linux/mount.h, which does not go together with older C libraries).
UniqueFd ownSysfs() {
  constexpr int kCloseOnExec = 1;
  constexpr int kCreate = 6;
  const UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, "sysfs", kCloseOnExec)));
  if (!context || ::syscall(SYS_fsconfig, context.get(), kCreate, nullptr, nullptr, 0) != 0) {
    return {};
  }
  return UniqueFd(static_cast<int>(::syscall(SYS_fsmount, context.get(), kCloseOnExec, 0)));
}

}  // namespace

PortSight::PortSight(std::string device)
    : device_(std::move(device)), socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  UniqueFd sysfs(::open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!shows(sysfs, device_)) sysfs = ownSysfs();
  if (!shows(sysfs, device_)) return;
  downs_ = openIn(sysfs, device_, "carrier_down_count");
  ups_ = openIn(sysfs, device_, "carrier_up_count");
  works();
}

bool PortSight::lost() const {
  ifreq request{};
  device_.copy(request.ifr_name, IFNAMSIZ - 1);
  if (!socket_ || device_.empty()) return false;
  if (::ioctl(socket_.get(), SIOCGIFFLAGS, &request) != 0) return errno == ENODEV;
  constexpr int kUsable = IFF_UP | IFF_RUNNING;
  if ((request.ifr_flags & kUsable) != kUsable) return true;
  if (!seesCarrier()) return false;
  const auto downs = readNumber(downs_.get());  // first: a flap in between is not a loss
  const auto ups = readNumber(ups_.get());
  return ups && downs && *downs - *ups > lossesWhileUp_;
}

void PortSight::works() {
  if (!seesCarrier()) return;
  const auto ups = readNumber(ups_.get());  // first: a flap in between hides a loss, makes none
  const auto downs = readNumber(downs_.get());
  if (ups && downs) lossesWhileUp_ = *downs - *ups;
}

}  // namespace faultline::fabric
