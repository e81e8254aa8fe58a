#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/launch/local_socket.h"
#include "harness/strike/plan.h"

/// Who asks the service, as the kernel tells it: nothing of it is what the client says.
namespace faultline::faultd {

/// The job of Slurm that a process is in, by the text of /proc/PID/cgroup: "job 17"; empty: none.
/// Only where Slurm makes its folders itself: users can make folders elsewhere, of any name. Pure.
std::string jobOfCgroups(std::string_view text);

/// Names and job of who is at the other end, by its process that has started then
/// (safety::Holder). kPermissionDenied when it has ended, or sees other interfaces than this
/// process does. May wait for a directory of users.
Result<strike::Asker> askerOf(const launch::LocalPeer& peer, std::uint64_t started);

}  // namespace faultline::faultd
