#pragma once

#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <memory>

#include "harness/site/netns/cluster.h"
#include "injector/netlink/namespace.h"
#include "resilient_ccl/transport/tcp/socket.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

namespace faultline::transport::tcp {

/// Two nodes with one rail, and a TCP connection from node 0 to node 1.
class ConnectedNodesTest : public test::NetnsTest {
 protected:
  static constexpr Duration kLong = 10s;

  /// To be called first; `rate` 0: not shaped.
  Status connectNodes(BitsPerSecond rate = 0) {
    ASSIGN_OR_RETURN(cluster_, netns::Cluster::create({.nodes = 2, .rails = 1, .rail_rate = rate}));
    port_ = cluster_->pathTarget(0, 1, 0).nic;
    UniqueFd listener;
    {
      ASSIGN_OR_RETURN(const auto inside, enter(1));
      ASSIGN_OR_RETURN(listener, openListener(place(1)));
    }
    ASSIGN_OR_RETURN(peer_, localEndpoint(listener.get()));
    {
      ASSIGN_OR_RETURN(const auto inside, enter(0));
      ASSIGN_OR_RETURN(connecting_, beginConnect(place(0), peer_));
    }
    if (!test::pollUntil(kLong, [&] {
          accepted_.reset(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
          return accepted_.valid();
        })) {
      return errorf(Code::kDeadlineExceeded, "nobody connected");
    }
    pollfd writable{connecting_.get(), POLLOUT, 0};
    poll(&writable, 1, 1000);
    return connectOutcome(connecting_.get());
  }

  SocketPlace place(int node) const {
    return {*parseAddress(netns::railAddress(node, 0)), netns::railName(0), 0};
  }
  Result<netlink::ScopedNamespace> enter(int node) const {
    return netlink::ScopedNamespace::enter(cluster_->nodeNamespace(node));
  }

  /// Of what a socket has to send: not acknowledged, sent or not.
  static int inSocket(int socket) { return bytes(socket, SIOCOUTQ); }
  /// Nothing has been sent of what is in the socket.
  static bool waits(int socket) {
    return inSocket(socket) > 0 && bytes(socket, SIOCOUTQNSD) == inSocket(socket);
  }
  static int bytes(int socket, unsigned long request) {
    int count = -1;
    EXPECT_EQ(ioctl(socket, request, &count), 0);
    return count;
  }

  std::unique_ptr<netns::Cluster> cluster_;
  netlink::LinkEnd port_;  // of node 0
  Endpoint peer_;
  UniqueFd connecting_, accepted_;
};

}  // namespace faultline::transport::tcp
