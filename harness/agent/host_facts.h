#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/units.h"
#include "wire/agent.h"

namespace faultline::agent {

/// What this machine, and the network namespace of the calling thread, are like. Needs no
/// privilege.
Result<wire::HostFacts> readHostFacts();

/// The interface of the default route in the text of /proc/net/route, the one of the lowest metric;
/// empty: there is none. Pure.
std::string defaultRouteIn(std::string_view text);

/// What a process shares with no other, in the text of its /proc/PID/smaps_rollup. Pure.
Bytes privateMemoryIn(std::string_view text);

/// The third word of SSH_CONNECTION: the address of this machine to which ssh has come. Pure.
std::string reachedAt(std::string_view connection);
/// The address from which ssh has come to this process; empty: not by ssh.
std::string reachedFrom();

}  // namespace faultline::agent
