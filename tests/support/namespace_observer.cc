#include "tests/support/namespace_observer.h"

#include <string>

#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"

namespace faultline::test {
namespace {

// Far from the indexes that a cluster chooses, at either end.
constexpr int kFirstFarIndex = 500'000;
constexpr int kFirstNearIndex = 600'000;

}  // namespace

Result<NamespaceObserver> NamespaceObserver::make() {
  ASSIGN_OR_RETURN(UniqueFd fd, netlink::newNamespace());
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::open(fd.get()));
  return NamespaceObserver(std::move(fd), std::move(socket));
}

Status NamespaceObserver::watch(int namespace_fd) {
  const std::string number = std::to_string(watched_);
  RETURN_IF_ERROR(netlink::createVeth(socket_, {"far" + number, kFirstFarIndex + watched_},
                                      namespace_fd, {"near" + number, kFirstNearIndex + watched_}));
  ++watched_;
  return okStatus();
}

Result<int> NamespaceObserver::alive() {
  ASSIGN_OR_RETURN(const std::vector<netlink::NetDevice> links, netlink::listNetDevices(socket_));
  int count = 0;
  for (const netlink::NetDevice& link : links) count += link.name.starts_with("far") ? 1 : 0;
  return count;
}

}  // namespace faultline::test
