#pragma once

#include <map>
#include <string>

#include "injector/netlink/configuration_entry.h"

namespace faultline::netlink {

/// Names of interfaces by their index.
using InterfaceNames = std::map<int, std::string>;

/// An entry in the words of `ip`, e.g. "route 10.90.0.0/16 via 10.1.0.2 dev rail0 table 100" or
/// "nexthop id 7 group 5/6,2": what one would write behind `ip ... add`. An interface without a
/// name is "if7". Pure.
std::string inWords(const ConfigurationEntry& entry, const InterfaceNames& names = {});

}  // namespace faultline::netlink
