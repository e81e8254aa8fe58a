#pragma once

#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::transport::shm {

/// Stream sockets between processes of one node, by which they find each other. Their names are
/// abstract: given by the kernel, seen only in this network namespace, and gone with the process.
/// Non-blocking and close-on-exec.
Result<UniqueFd> openLocalListener();
/// What a listener is called, for `connectLocally`. A few bytes, not text.
Result<std::string> localName(int listener);
Result<UniqueFd> connectLocally(const std::string& name);

/// Sends a descriptor over a connection, before anything else. kUnavailable when the other end has
/// closed.
Status sendDescriptor(int connection, int descriptor);
/// The descriptor that the other end has sent first: invalid while it is not there. kUnavailable
/// when the other end has closed, kInvalidArgument when it sent something else.
Result<UniqueFd> receiveDescriptor(int connection);

}  // namespace faultline::transport::shm
