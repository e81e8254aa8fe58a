#include "injector/rdma/dcb.h"

namespace faultline::rdma {

Result<Maxrates> readMaxrates(netlink::Socket& socket, std::string_view netdev) {
  netlink::Message message = askMaxrates(netdev);
  std::optional<Maxrates> rates;
  const std::string attempt = fmt::format("read the rate limits of {} (DCB maxrate)", netdev);
  RETURN_IF_ERROR(socket.ask(message, attempt, [&](const nlmsghdr* answer) {
    if (const auto found = parseMaxrates(answer)) rates = found;
  }));
  if (rates) return *rates;
  return errorf(Code::kUnsupported, "{}: its driver has no rate limit for each traffic class",
                attempt);
}

Status writeMaxrates(netlink::Socket& socket, std::string_view netdev, const Maxrates& rates) {
  netlink::Message message = setMaxrates(netdev, rates);
  const std::string attempt =
      fmt::format("set the rate limits of {} (DCB maxrate: {})", netdev, formatMaxrates(rates));
  int error = 0;
  RETURN_IF_ERROR(socket.ask(message, attempt, [&](const nlmsghdr* answer) {
    if (const int found = parseSetError(answer); found != 0) error = found;
  }));
  if (error != 0) return Status::fromErrno(error, attempt);
  ASSIGN_OR_RETURN(const Maxrates now, readMaxrates(socket, netdev));
  if (now == rates) return okStatus();
  return errorf(Code::kUnsupported, "{}: the driver has taken {} instead", attempt,
                formatMaxrates(now));
}

}  // namespace faultline::rdma
