#include "resilient_ccl/fabric/handshake.h"

#include <sys/socket.h>

#include <cerrno>

#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::fabric {

Handshake Handshake::connecting(UniqueFd socket, const Hello& hello, TimePoint deadline) {
  Handshake result;
  result.socket_ = std::move(socket);
  result.connecting_ = true;
  result.hello_ = hello;
  result.deadline_ = deadline;
  return result;
}

Handshake Handshake::accepted(UniqueFd socket, TimePoint deadline) {
  Handshake result;
  result.socket_ = std::move(socket);
  result.deadline_ = deadline;
  return result;
}

Result<bool> Handshake::advance() {
  if (connecting_ && !sent_) {
    RETURN_IF_ERROR(transport::tcp::connectOutcome(fd()));
    // The first bytes of a fresh connection always fit its send buffer.
    const ssize_t sent = send(fd(), &hello_, sizeof(hello_), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN)) return false;
    if (sent != sizeof(hello_)) return Status::fromErrno(errno, "send the hello of a rail");
    sent_ = true;
  }
  while (read_ < sizeof(answer_)) {
    const ssize_t got =
        recv(fd(), reinterpret_cast<char*>(&answer_) + read_, sizeof(answer_) - read_, 0);
    if (got == 0) return errorf(Code::kUnavailable, "the peer does not take the rail now");
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return false;
      return Status::fromErrno(errno, "read the hello of a rail");
    }
    read_ += static_cast<std::size_t>(got);
  }
  if (answer_.magic != Hello::kMagic) {
    return errorf(Code::kInvalidArgument, "somebody who is not a rail connected");
  }
  if (connecting_ && !(answer_ == hello_)) {
    return errorf(Code::kInvalidArgument, "the peer answered for another rail");
  }
  if (!connecting_) hello_ = answer_;
  return true;
}

Result<UniqueFd> Handshake::accept() {
  if (send(fd(), &hello_, sizeof(hello_), MSG_NOSIGNAL) != sizeof(hello_)) {
    return Status::fromErrno(errno, "answer the hello of a rail");
  }
  return std::move(socket_);
}

}  // namespace faultline::fabric
