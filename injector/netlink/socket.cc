#include "injector/netlink/socket.h"

#include <fcntl.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "injector/netlink/namespace.h"

namespace faultline::netlink {
namespace {

// The kernel fills at most 32 KiB per answer to a dump; what is larger would be truncated.
constexpr std::size_t kAnswerBytes = 64 * 1024;
// A dump is torn only by a concurrent change, and these are rare: more would be a bug.
constexpr int kMostDumpAttempts = 10;

/// What the kernel says in words beside the error number, if anything.
std::string kernelExplanation(const nlmsghdr* header) {
  const auto* const error = static_cast<const nlmsgerr*>(nlmsg_data(header));
  if ((header->nlmsg_flags & NLM_F_ACK_TLVS) == 0) return "";
  std::size_t offset = sizeof(nlmsgerr);
  if ((header->nlmsg_flags & NLM_F_CAPPED) == 0) {
    offset += NLMSG_ALIGN(error->msg.nlmsg_len) - sizeof(nlmsghdr);
  }
  const std::size_t size = header->nlmsg_len - NLMSG_HDRLEN;
  if (offset >= size) return "";
  auto* const first = reinterpret_cast<nlattr*>(
      const_cast<char*>(static_cast<const char*>(nlmsg_data(header)) + offset));
  const nlattr* const text = nla_find(first, static_cast<int>(size - offset), NLMSGERR_ATTR_MSG);
  return text == nullptr ? "" : fmt::format(" ({})", static_cast<const char*>(nla_data(text)));
}

}  // namespace

void Socket::Free::operator()(nl_sock* socket) const { nl_socket_free(socket); }

Socket::Socket(std::unique_ptr<nl_sock, Free> socket, UniqueFd namespace_fd)
    : socket_(std::move(socket)), namespace_(std::move(namespace_fd)), buffer_(kAnswerBytes) {}

Result<Socket> Socket::open(int namespace_fd, int protocol) {
  UniqueFd own(::fcntl(namespace_fd, F_DUPFD_CLOEXEC, 0));
  if (!own) return Status::fromErrno(errno, "keep a network namespace");
  ASSIGN_OR_RETURN(const ScopedNamespace inside, ScopedNamespace::enter(namespace_fd));
  std::unique_ptr<nl_sock, Free> socket(nl_socket_alloc());
  if (socket == nullptr) return errorf(Code::kIo, "open a netlink socket: out of memory");
  errno = 0;
  const int error = nl_connect(socket.get(), protocol);
  if (error < 0 && (errno == EMFILE || errno == ENFILE)) {  // libnl has no word for it
    return Status::fromErrno(errno, "open a netlink socket");
  }
  if (error == -NLE_PROTO_MISMATCH) {  // libnl's word for EPROTONOSUPPORT
    return errorf(Code::kUnsupported, "open a netlink socket: the kernel has no protocol {}",
                  protocol);
  }
  if (error < 0) {
    return errorf(Code::kIo, "open a netlink socket: {}", nl_geterror(error));
  }
  const int on = 1;
  // Explanations in words are a help, not a need: old kernels may refuse.
  ::setsockopt(nl_socket_get_fd(socket.get()), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  return Socket(std::move(socket), std::move(own));
}

Status Socket::request(Message message, std::string_view attempt) {
  const auto answer = exchange(message, NLM_F_ACK, attempt, [](const nlmsghdr*) {});
  return answer.status();
}

Status Socket::ask(Message& message, std::string_view attempt, const Visit& visit) {
  return exchange(message, NLM_F_ACK, attempt, visit).status();
}

Status Socket::dump(Message& message, std::string_view attempt, const Visit& visit,
                    const std::function<void()>& restart) {
  for (int tries = 0; tries < kMostDumpAttempts; ++tries) {
    ASSIGN_OR_RETURN(const Answer answer, exchange(message, NLM_F_DUMP, attempt, visit));
    if (answer == Answer::kComplete || !restart) return okStatus();
    restart();
  }
  return errorf(Code::kUnavailable, "{}: the answer changed while it was read, {} times", attempt,
                kMostDumpAttempts);
}

Result<Socket::Answer> Socket::exchange(Message& message, int flags, std::string_view attempt,
                                        const Visit& visit) {
  nlmsghdr* const request = nlmsg_hdr(message.get());
  request->nlmsg_seq = NL_AUTO_SEQ;  // a repeated question needs a number of its own
  request->nlmsg_flags |= flags;
  nl_complete_msg(socket_.get(), message.get());
  if (const int error = nl_send(socket_.get(), message.get()); error < 0) {
    return errorf(Code::kIo, "{}: cannot ask the kernel: {}", attempt, nl_geterror(error));
  }
  bool torn = false;
  while (true) {
    // MSG_TRUNC makes the kernel return the true size, so that a cut answer is seen.
    const ssize_t size =
        ::recv(nl_socket_get_fd(socket_.get()), buffer_.data(), buffer_.size(), MSG_TRUNC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Status::fromErrno(errno, attempt);
    if (static_cast<std::size_t>(size) > buffer_.size()) {
      return errorf(Code::kInternal, "{}: an answer of {} bytes", attempt, size);
    }
    int left = static_cast<int>(size);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer_.data()); nlmsg_ok(header, left);
         header = nlmsg_next(header, &left)) {
      if (header->nlmsg_seq != request->nlmsg_seq) continue;  // of an earlier, abandoned request
      torn = torn || (header->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (header->nlmsg_type == NLMSG_ERROR) {
        const int error = static_cast<const nlmsgerr*>(nlmsg_data(header))->error;
        if (error == 0) return Answer::kComplete;
        Status status = Status::fromErrno(-error, attempt);
        return Status(status.code(), status.message() + kernelExplanation(header));
      }
      if (header->nlmsg_type == NLMSG_DONE) return torn ? Answer::kTorn : Answer::kComplete;
      visit(header);
    }
  }
}

}  // namespace faultline::netlink
