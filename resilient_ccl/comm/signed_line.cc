#include "resilient_ccl/comm/signed_line.h"

#include <poll.h>

#include <span>

namespace faultline::comm {

using transport::tcp::receiveAll;
using transport::tcp::sendAll;

namespace {

/// What is signed in front of a word and the connection's hello.
struct WordLabel {
  std::uint32_t magic = 0x44434c46;  // "FLCD"
  std::uint32_t sender = 0;
  std::uint64_t number = 0;  // of the word on its connection and direction
};
static_assert(sizeof(WordLabel) == 16);

template <typename T>
std::span<const std::byte> raw(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Result<SignedLine> SignedLine::connect(auth::Authenticator& authenticator, std::uint32_t address,
                                       const transport::tcp::Endpoint& to, fabric::Hello hello,
                                       TimePoint deadline) {
  hello.rail = kNoRail;
  // No two connections of the job have the same hello: what is signed with it belongs to one.
  auth::fillRandom(std::as_writable_bytes(std::span(&hello.epoch, 1)));
  auth::fillRandom(std::as_writable_bytes(std::span(&hello.attempt, 1)));
  ASSIGN_OR_RETURN(UniqueFd socket, transport::tcp::beginConnect({address, "", 0}, to));
  auto handshake = fabric::Handshake::connecting(std::move(socket), hello, deadline);
  for (bool done = false; !done;) {
    const Duration left = deadline - now();
    pollfd waiting{handshake.fd(), handshake.wantsWritable() ? short{POLLOUT} : short{POLLIN}, 0};
    const auto milliseconds = duration_cast<std::chrono::milliseconds>(left).count();
    if (left <= Duration::zero() || ::poll(&waiting, 1, static_cast<int>(milliseconds)) == 0) {
      return errorf(Code::kDeadlineExceeded, "who listens there has not answered");
    }
    ASSIGN_OR_RETURN(done, handshake.advance(authenticator));
  }
  return SignedLine(handshake.release(), hello);
}

Status SignedLine::send(auth::Authenticator& authenticator, int from, const std::string& word,
                        TimePoint deadline) {
  const auto length = static_cast<std::uint32_t>(word.size());
  const WordLabel label{.sender = static_cast<std::uint32_t>(from), .number = sent_++};
  const auth::Tag tag =
      authenticator.tagOf({raw(label), raw(hello_), std::as_bytes(std::span(word))});
  RETURN_IF_ERROR(sendAll(fd(), &length, sizeof(length), deadline));
  RETURN_IF_ERROR(sendAll(fd(), word.data(), word.size(), deadline));
  return sendAll(fd(), &tag, sizeof(tag), deadline);
}

Result<std::string> SignedLine::receive(auth::Authenticator& authenticator, int from,
                                        TimePoint deadline) {
  std::uint32_t length = 0;
  RETURN_IF_ERROR(receiveAll(fd(), &length, sizeof(length), deadline));
  if (length > kLargestWord) {
    return errorf(Code::kInvalidArgument, "a word of {} bytes", length);
  }
  std::string word(length, '\0');
  auth::Tag tag;
  RETURN_IF_ERROR(receiveAll(fd(), word.data(), word.size(), deadline));
  RETURN_IF_ERROR(receiveAll(fd(), &tag, sizeof(tag), deadline));
  const WordLabel label{.sender = static_cast<std::uint32_t>(from), .number = received_++};
  if (!authenticator.verify({raw(label), raw(hello_), std::as_bytes(std::span(word))}, tag)) {
    return errorf(Code::kInvalidArgument, "a word that is not its own");
  }
  return word;
}

}  // namespace faultline::comm
