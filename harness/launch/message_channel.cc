#include "harness/launch/message_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include "base/json.h"
#include "base/limits.h"
#include "base/units.h"

namespace faultline::launch {
namespace {

constexpr std::size_t kHeader = sizeof(std::uint32_t);
constexpr std::size_t kReadSize = 64 * 1024;

std::array<char, kHeader> encodeLength(std::size_t length) {
  std::array<char, kHeader> header;
  for (std::size_t index = 0; index < kHeader; ++index) {
    header[index] = static_cast<char>(length >> (8 * index));
  }
  return header;
}

std::size_t decodeLength(const char* header) {
  std::size_t length = 0;
  for (std::size_t index = 0; index < kHeader; ++index) {
    length |= std::size_t{static_cast<unsigned char>(header[index])} << (8 * index);
  }
  return length;
}

/// Waits for `events`; false when they do not come in time.
bool waitFor(int fd, short events, TimePoint deadline) {
  while (true) {
    const double left = std::max(0.0, toMilliseconds(deadline - now()));
    pollfd ready{fd, events, 0};
    // One more millisecond: rounding down would spin at the end.
    const int count = ::poll(&ready, 1, static_cast<int>(left) + 1);
    if (count > 0) return true;
    if (now() >= deadline) return false;
  }
}

/// Now; otherwise errno is EAGAIN. An end or an error makes it ready, too.
bool isReady(int fd, short events) {
  pollfd ready{fd, events, 0};
  if (::poll(&ready, 1, 0) > 0) return true;
  errno = EAGAIN;
  return false;
}

}  // namespace

Result<std::pair<MessageChannel, MessageChannel>> MessageChannel::makePair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return callRefused(errno, "socketpair", "make a message channel");
  }
  return std::pair(MessageChannel(UniqueFd(ends[0])), MessageChannel(UniqueFd(ends[1])));
}

MessageChannel::MessageChannel(UniqueFd fd) : fd_(std::move(fd)) {}

MessageChannel::MessageChannel(UniqueFd in, UniqueFd out)
    : fd_(std::move(in)), out_(std::move(out)) {}

ssize_t MessageChannel::sendPart(std::string_view bytes, std::span<const int> descriptors) {
  if (out_) {
    if (!isReady(out_.get(), POLLOUT)) return -1;
    // So much of a pipe that is ready can be written without waiting (pipe(7)).
    return ::write(out_.get(), bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
  }
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(first), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(fd_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t MessageChannel::receivePart(char* into, std::size_t size) {
  if (out_) return isReady(fd_.get(), POLLIN) ? ::read(fd_.get(), into, size) : -1;
  iovec part{into, size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control;
  header.msg_control = descriptors_wanted_ ? control.data() : nullptr;
  header.msg_controllen = descriptors_wanted_ ? control.size() : 0;
  const ssize_t got = ::recvmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t index = 0; index < count; ++index) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(at) + index * sizeof fd, sizeof fd);
      descriptors_.emplace_back(fd);
    }
  }
  if (header.msg_flags & MSG_CTRUNC) {  // the kernel closes what finds no place in this process
    errno = descriptors_wanted_ ? EMFILE : EPROTO;
    return -1;
  }
  return got;
}

std::optional<UniqueFd> MessageChannel::takeDescriptor() {
  if (descriptors_.empty()) return std::nullopt;
  std::optional<UniqueFd> taken(std::move(descriptors_.front()));
  descriptors_.pop_front();
  return taken;
}

std::string MessageChannel::textOf(const nlohmann::json& message) {
  // Text that is not UTF-8 (a program's output, say) must not cost the message.
  return message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status MessageChannel::send(const nlohmann::json& message, std::span<const int> descriptors,
                            const GiveUp& giveUp) {
  std::string bytes = textOf(message);
  if (bytes.size() > kLargestMessage) {
    return errorf(Code::kInvalidArgument, "a message of {} bytes is too large: {} are possible",
                  bytes.size(), kLargestMessage);
  }
  if (descriptors.size() > kMostDescriptors) {
    return errorf(Code::kInvalidArgument, "{} descriptors with a message: {} are possible",
                  descriptors.size(), kMostDescriptors);
  }
  const auto header = encodeLength(bytes.size());
  bytes.insert(0, header.data(), header.size());
  TimePoint deadline = now() + kSendTimeout;  // of each part: a guest reads slowly
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    // They go with the first bytes.
    const ssize_t size = sendPart(std::string_view(bytes).substr(sent),
                                  sent == 0 ? descriptors : std::span<const int>());
    if (size >= 0) {
      sent += static_cast<std::size_t>(size);
      deadline = now() + kSendTimeout;
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(unlessGivenUp(giveUp, "send a message that is not read"));
      const TimePoint look = giveUp ? std::min(deadline, now() + kGiveUpInterval) : deadline;
      if (!waitFor(outFd(), POLLOUT, look) && now() >= deadline) {
        return errorf(Code::kDeadlineExceeded, "the other end did not read a message for {}",
                      formatDuration(kSendTimeout));
      }
    } else if (errno != EINTR) {
      return Status::fromErrno(errno, "send a message");
    }
  }
  return okStatus();
}

Status MessageChannel::parseComplete() {
  std::size_t consumed = 0;
  Status status;
  while (status.ok() && received_.size() - consumed >= kHeader) {
    const std::size_t length = decodeLength(received_.data() + consumed);
    if (length > largest_) {
      status = errorf(Code::kIo, "a message announces {} bytes; {} are possible", length, largest_);
      break;
    }
    if (received_.size() - consumed < kHeader + length) break;
    const std::string_view text(received_.data() + consumed + kHeader, length);
    Result<nlohmann::json> message = parseJson(text);
    if (message.ok()) {
      complete_.push_back(std::move(*message));
    } else {
      status = errorf(Code::kIo, "a message: {}", message.status().message());
    }
    consumed += kHeader + length;
  }
  received_.erase(0, consumed);
  return status;
}

Status MessageChannel::readAvailable() {
  while (!closed_) {
    const std::size_t old_size = received_.size();
    received_.resize(old_size + kReadSize);
    const ssize_t size = receivePart(received_.data() + old_size, kReadSize);
    const int error = errno;
    received_.resize(old_size + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    if (size > 0) {
      // Not more than one message is read ahead: an endless one must be noticed.
      RETURN_IF_ERROR(parseComplete());
      if (!complete_.empty()) return okStatus();
    } else if (size == 0 || error == ECONNRESET) {
      closed_ = true;
    } else if (error == EAGAIN) {
      return okStatus();
    } else if (error != EINTR) {
      return Status::fromErrno(error, "receive a message");
    }
  }
  return okStatus();
}

Result<std::optional<nlohmann::json>> MessageChannel::receive() {
  if (complete_.empty()) RETURN_IF_ERROR(readAvailable());
  if (!complete_.empty()) {
    std::optional<nlohmann::json> message(std::move(complete_.front()));
    complete_.pop_front();
    return message;
  }
  if (!closed_) return std::optional<nlohmann::json>();
  return errorf(Code::kUnavailable, "the other end is gone{}",
                received_.empty() ? "" : " in the middle of a message");
}

Result<nlohmann::json> MessageChannel::receiveWithin(Duration budget) {
  const TimePoint deadline = now() + budget;
  while (true) {
    ASSIGN_OR_RETURN(std::optional<nlohmann::json> message, receive());
    if (message) return *std::move(message);
    if (!waitFor(fd_.get(), POLLIN, deadline)) {
      return errorf(Code::kDeadlineExceeded, "no message for {}", formatDuration(budget));
    }
  }
}

}  // namespace faultline::launch
