#include "resilient_ccl/fabric/handshake.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "resilient_ccl/auth/mutual_proof.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::fabric {
namespace {

template <typename T>
std::span<const std::byte> readable(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

template <typename T>
std::span<std::byte> writable(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

/// What is sent first in its direction of a fresh connection always fits the send buffer.
Status sendFirst(int fd, std::span<const std::byte> bytes, std::string_view what) {
  const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(bytes.size())) return okStatus();
  return Status::fromErrno(errno, fmt::format("send {} of a connection", what));
}

}  // namespace

Handshake Handshake::connecting(UniqueFd socket, const Hello& hello, TimePoint deadline,
                                Duration forAnswer) {
  Handshake result;
  result.socket_ = std::move(socket);
  result.message_.hello = hello;
  result.deadline_ = deadline;
  result.forAnswer_ = forAnswer;
  return result;
}

Handshake Handshake::accepted(UniqueFd socket, TimePoint deadline) {
  Handshake result;
  result.socket_ = std::move(socket);
  result.step_ = Step::kChallenge;
  auth::fillRandom(result.challenge_);
  result.deadline_ = deadline;
  return result;
}

Result<bool> Handshake::read(std::span<std::byte> target) {
  while (read_ < target.size()) {
    const ssize_t got = recv(fd(), target.data() + read_, target.size() - read_, 0);
    if (got == 0)
      return errorf(Code::kUnavailable, "the other end does not take the connection now");
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return false;
      return Status::fromErrno(errno, "read the hello of a connection");
    }
    read_ += static_cast<std::size_t>(got);
  }
  read_ = 0;
  return true;
}

Result<bool> Handshake::advance(auth::Authenticator& authenticator) {
  if (step_ == Step::kConnect) {
    RETURN_IF_ERROR(transport::tcp::connectOutcome(fd()));
    step_ = Step::kReadChallenge;
  }
  if (step_ == Step::kReadChallenge) {
    ASSIGN_OR_RETURN(const bool complete, read(challenge_));
    if (!complete) return false;
    message_.tag = auth::signHello(authenticator, challenge_, readable(message_.hello));
    RETURN_IF_ERROR(sendFirst(fd(), readable(message_), "the hello"));
    deadline_ = std::max(deadline_, now() + forAnswer_);
    step_ = Step::kReadAnswer;
  }
  if (step_ == Step::kReadAnswer) {
    ASSIGN_OR_RETURN(const bool complete, read(answer_));
    if (!complete) return false;
    if (!auth::verifyAnswer(authenticator, challenge_, readable(message_.hello), {}, answer_)) {
      return errorf(Code::kInvalidArgument, "who answers for the peer is not of this job");
    }
    step_ = Step::kDone;
  }
  if (step_ == Step::kChallenge) {
    RETURN_IF_ERROR(sendFirst(fd(), challenge_, "the challenge"));
    step_ = Step::kReadHello;
  }
  if (step_ == Step::kReadHello) {
    ASSIGN_OR_RETURN(const bool complete, read(writable(message_)));
    if (!complete) return false;
    if (message_.hello.magic != Hello::kMagic ||
        !auth::verifyHello(authenticator, challenge_, readable(message_.hello), message_.tag)) {
      return errorf(Code::kInvalidArgument, "somebody who is not of this job connected");
    }
    step_ = Step::kDone;
  }
  return true;
}

Result<UniqueFd> Handshake::accept(auth::Authenticator& authenticator) {
  // It says nothing between its hello and our answer.
  std::byte more{};
  if (recv(fd(), &more, sizeof(more), MSG_PEEK) >= 0) {
    return errorf(Code::kUnavailable, "the other end has given the connection up");
  }
  const auth::Tag answer = auth::signAnswer(authenticator, challenge_, readable(message_.hello));
  RETURN_IF_ERROR(sendFirst(fd(), answer, "the answer"));
  return std::move(socket_);
}

}  // namespace faultline::fabric
