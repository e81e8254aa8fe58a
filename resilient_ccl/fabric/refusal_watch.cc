#include "resilient_ccl/fabric/refusal_watch.h"

#include <cerrno>

#include "base/system_calls.h"

namespace faultline::fabric {

void RefusalWatch::send(int path, const transport::tcp::SocketPlace& place,
                        const transport::tcp::Endpoint& to, msghdr message) {
  UniqueFd& socket = sockets_[path];
  if (!socket) {
    Result<UniqueFd> opened = transport::tcp::openUdp(place);
    if (!opened.ok()) return;
    const sockaddr_in address = to.toSockaddr();
    const auto* const there = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(opened->get(), there, sizeof(address)) != 0) return;
    socket = std::move(*opened);
  }
  message.msg_name = nullptr;
  message.msg_namelen = 0;
  countSystemCall();
  // The error of an earlier datagram is reported instead of sending this one.
  if (::sendmsg(socket.get(), &message, MSG_DONTWAIT) < 0 && errno == ECONNREFUSED) refused_ = true;
}

}  // namespace faultline::fabric
