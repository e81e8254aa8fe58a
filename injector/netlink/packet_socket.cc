#include "injector/netlink/packet_socket.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "injector/netlink/namespace.h"

namespace faultline::netlink {

Result<PacketSocket> PacketSocket::open(const Socket& socket, int ifindex, std::uint16_t ethertype,
                                        const std::function<Status(int fd)>& prepare) {
  ASSIGN_OR_RETURN(const ScopedNamespace inside, ScopedNamespace::enter(socket.namespaceFd()));
  // Protocol 0 receives nothing until it is bound.
  UniqueFd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Status::fromErrno(errno, "open a packet socket");
  if (prepare) RETURN_IF_ERROR(prepare(fd.get()));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = ifindex;
  address.sll_protocol = htons(ethertype);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Status::fromErrno(errno, fmt::format("bind a packet socket to interface {}", ifindex));
  }
  return PacketSocket(std::move(fd), ifindex);
}

Result<bool> PacketSocket::send(std::uint16_t ethertype, const MacAddress& destination,
                                const void* payload, std::size_t size) const {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = ifindex_;
  address.sll_protocol = htons(ethertype);
  address.sll_halen = ETH_ALEN;
  std::ranges::copy(destination, address.sll_addr);
  const auto tryIt = [&] {
    return ::sendto(fd_.get(), payload, size, 0, reinterpret_cast<const sockaddr*>(&address),
                    sizeof address);
  };
  ssize_t sent = tryIt();
  // The interface was down since the last call: told once, although it may be up again.
  if (sent < 0 && errno == ENETDOWN) sent = tryIt();
  if (sent >= 0) return true;
  // ENOBUFS: the queue dropped it, which also means that it is full.
  if (errno == EAGAIN || errno == ENOBUFS) return false;
  return Status::fromErrno(errno, fmt::format("send a frame on interface {}", ifindex_));
}

Result<std::optional<std::size_t>> PacketSocket::receive(void* payload, std::size_t size) const {
  while (true) {
    const ssize_t received = ::recv(fd_.get(), payload, size, 0);
    if (received >= 0) return std::optional(static_cast<std::size_t>(received));
    // ENETDOWN: the interface was set down; what is queued can still be read.
    if (errno == EINTR || errno == ENETDOWN) continue;
    if (errno == EAGAIN) return std::optional<std::size_t>();
    return Status::fromErrno(errno, fmt::format("receive frames on interface {}", ifindex_));
  }
}

}  // namespace faultline::netlink
