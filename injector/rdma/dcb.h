#pragma once

#include <string_view>

#include "base/status.h"
#include "injector/netlink/socket.h"
#include "injector/rdma/dcb_messages.h"

namespace faultline::rdma {

/// The limits of an interface (`socket`: rtnetlink). kUnsupported when its driver has none.
Result<Maxrates> readMaxrates(netlink::Socket& socket, std::string_view netdev);

/// Sets them and reads them back: a driver that cannot do it says nothing when asked to. Needs
/// CAP_NET_ADMIN.
Status writeMaxrates(netlink::Socket& socket, std::string_view netdev, const Maxrates& rates);

}  // namespace faultline::rdma
