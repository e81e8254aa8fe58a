#include "resilient_ccl/transport/tcp/congestion_control.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

#include "base/system_calls.h"
#include "base/unique_fd.h"

namespace faultline::transport::tcp {
namespace {

constexpr std::string_view kFromThenOn = "cubic";
constexpr Duration kBetweenLooks = 5ms;

/// The pace over what a rail carries: a rail that became faster is found out by as much at a time.
constexpr double kHeadroom = 1.5;
/// bytes/s: no less, so that a stream that was given little is not held up when it is given more.
constexpr double kLeastPace = 125e6;
/// bytes/s: a rail that carries as much is given no bound.
constexpr double kFastRail = 1.25e9;

bool choose(int fd, std::string_view name) {
  countSystemCall();
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                    static_cast<socklen_t>(name.size())) == 0;
}

}  // namespace

void beginSlowStart(int fd) { (void)choose(fd, kInSlowStart); }

std::string streamCongestionControl() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return std::string(choose(fd.get(), kFromThenOn) ? kFromThenOn : kInSlowStart);
}

void CongestionControl::sent(int fd, TimePoint now) {
  if (refused_ || now - looked_ < kBetweenLooks) return;
  looked_ = now;
  tcp_info info{};
  socklen_t size = sizeof(info);
  countSystemCall();
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  // What it takes for lost it has cut already, and may yet take back.
  if (info.tcpi_ca_state > TCP_CA_Disorder) return;
  const bool slowStart = info.tcpi_snd_cwnd < info.tcpi_snd_ssthresh;
  if (!slowStart_.changed(slowStart, now)) return;
  // Not again where it is refused: the kernel would look for a module each time.
  refused_ = !choose(fd, slowStart ? kInSlowStart : kFromThenOn);
}

void shortenPortQueue(int fd, double bytesPerSecond) {
  const double pace = std::max(kHeadroom * bytesPerSecond, kLeastPace);
  const std::uint64_t most =
      bytesPerSecond < kFastRail ? static_cast<std::uint64_t>(pace) : ~std::uint64_t{0};
  countSystemCall();
  (void)setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &most, sizeof(most));
}

}  // namespace faultline::transport::tcp
