#pragma once

#include <vector>

#include "base/status.h"
#include "injector/netlink/configuration_entry.h"
#include "injector/netlink/socket.h"

namespace faultline::netlink {

/// All that belongs to an interface now, in the order in which it is to be put back: kinds in their
/// order; addresses as they would have to be added one after the other; groups behind their
/// members; routes that others' gateways need before those.
Result<std::vector<ConfigurationEntry>> readEntries(Socket& socket, Belongings of);

}  // namespace faultline::netlink
