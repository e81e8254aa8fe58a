#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

/// Stream sockets of this machine that have a path (unix(7)).
namespace faultline::launch {

/// Who is at the other end of one, as the kernel says.
struct LocalPeer {
  pid_t pid = 0;  ///< it had when it connected; somebody else may have the number by now
  uid_t uid = 0;
  std::vector<gid_t> groups{};  ///< all of them
};

Result<LocalPeer> localPeer(int fd);

/// Listens at `path`; a socket that is left there is replaced, and nothing else: claimFile() first.
/// Accepting does not wait. Changes the mask of file modes meanwhile: only while there is no other
/// thread.
Result<UniqueFd> listenAt(const std::string& path, mode_t mode);

/// kNotFound when nobody listens there, kPermissionDenied when it is neither root nor this user,
/// kDeadlineExceeded when it has no time for us.
Result<UniqueFd> connectTo(const std::string& path, Duration patience);

/// Makes this process the only one that has claimed a file, for as long as the descriptor is open,
/// and writes its number into it. kAlreadyExists, with the number of the other process.
Result<UniqueFd> claimFile(const std::string& path);

}  // namespace faultline::launch
