#include "injector/rdma/link_deletion.h"

#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/unique_fd.h"

namespace faultline::rdma {
namespace {

// In the exit status there is room for one byte; Linux's error numbers fit.
constexpr int kNoAnswer = 255;

/// Only system calls: it runs in a child of a process that may have threads.
[[noreturn]] void sendAndWait(int fd, const void* request, std::size_t size) {
  ::setsid();  // signals of our terminal are not for it
  // What it inherited would stay open as long as it waits.
  if (fd > 0) ::close_range(0, static_cast<unsigned>(fd) - 1, 0);
  ::close_range(static_cast<unsigned>(fd) + 1, ~0U, 0);
  if (::send(fd, request, size, 0) < 0) ::_exit(errno);
  alignas(nlmsghdr) std::array<char, 4096> answer;
  const ssize_t got = ::recv(fd, answer.data(), answer.size(), 0);
  if (got < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) ::_exit(kNoAnswer);
  const auto* const header = reinterpret_cast<const nlmsghdr*>(answer.data());
  if (header->nlmsg_type != NLMSG_ERROR) ::_exit(kNoAnswer);
  ::_exit(-static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error);
}

constexpr int kPauseMilliseconds = 2;

}  // namespace

Status awaitDeletion(std::string_view device, const std::function<std::optional<Status>()>& answer,
                     const std::function<Result<bool>()>& listed, Duration budget) {
  const TimePoint deadline = now() + budget;
  while (true) {
    if (const auto said = answer(); said && !said->ok()) return *said;
    ASSIGN_OR_RETURN(const bool there, listed());
    if (!there) return okStatus();
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded, "delete the RDMA device {}: it is still there",
                    device);
    }
    ::poll(nullptr, 0, kPauseMilliseconds);
  }
}

Result<LinkDeletion> LinkDeletion::start(const Device& device) {
  netlink::Message message = deleteLink(device.index);
  nlmsghdr* const request = nlmsg_hdr(message.get());
  request->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
  if (!socket) return Status::fromErrno(errno, "open a socket for RDMA netlink");
  const pid_t pid = ::fork();
  if (pid < 0) return Status::fromErrno(errno, "start a process that deletes an RDMA device");
  if (pid == 0) sendAndWait(socket.get(), request, request->nlmsg_len);
  return LinkDeletion(pid, device.name);
}

LinkDeletion::LinkDeletion(LinkDeletion&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      device_(std::move(other.device_)),
      answer_(std::move(other.answer_)) {}

LinkDeletion::~LinkDeletion() { (void)poll(); }

std::optional<Status> LinkDeletion::poll() {
  if (answer_ || pid_ < 0) return answer_;
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return std::nullopt;
  const std::string attempt = fmt::format("delete the RDMA device {}", device_);
  pid_ = -1;
  if (ended < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == kNoAnswer) {
    answer_ = errorf(Code::kIo, "{}: the kernel gave no answer", attempt);
  } else if (WEXITSTATUS(status) != 0) {
    answer_ = Status::fromErrno(WEXITSTATUS(status), attempt);
  } else {
    answer_ = okStatus();
  }
  return answer_;
}

}  // namespace faultline::rdma
