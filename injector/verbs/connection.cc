#include "injector/verbs/connection.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "injector/verbs/address.h"

namespace faultline::injector::verbs {
namespace {

constexpr timeval kPatience{5, 0};

std::string contentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The value of a variable in the environment that a process was started with.
std::string variableOf(pid_t pid, std::string_view name) {
  std::istringstream environment(contentOf(fmt::format("/proc/{}/environ", pid)));
  for (std::string entry; std::getline(environment, entry, '\0');) {
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return "";
}

struct Owner {
  uid_t user = 0;   ///< effective
  pid_t inner = 0;  ///< the process's number where it lives, which may be a container
};

Result<Owner> ownerOf(pid_t pid) {
  std::istringstream status(contentOf(fmt::format("/proc/{}/status", pid)));
  Owner owner;
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "Uid:") words >> owner.user >> owner.user;
    if (key != "NSpid:") continue;
    for (pid_t number = 0; words >> number;) owner.inner = number;
  }
  if (owner.inner != 0) return owner;
  return errorf(Code::kNotFound, "there is no process {}", pid);
}

Status explain(pid_t pid, int error) {
  if (error == EACCES || error == EPERM) {
    return errorf(Code::kPermissionDenied,
                  "process {} is another user's: faults are for its own user and root", pid);
  }
  if (contentOf(fmt::format("/proc/{}/maps", pid)).find("libfaultline-verbs.so") !=
      std::string::npos) {
    return errorf(
        Code::kUnavailable,
        "process {} has the verbs shim, but it does not answer: it has not opened an RDMA "
        "device (yet), or could not make its socket and has said so on its stderr",
        pid);
  }
  return errorf(Code::kUnavailable, "process {} has no verbs shim: {}", pid, kHowToLoad);
}

}  // namespace

Result<Connection> Connection::open(pid_t pid) {
  ASSIGN_OR_RETURN(const Owner owner, ownerOf(pid));
  std::string folder = variableOf(pid, kFolderVariable);
  if (folder.empty()) folder = defaultFolder(owner.user);
  // Through the process's own root, since it may live in a container; and through a descriptor,
  // since the path of a socket is short.
  const std::string place = fmt::format("/proc/{}/root{}", pid, folder);
  const UniqueFd directory(::open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return explain(pid, errno);
  const std::string path = socketPath(fmt::format("/proc/self/fd/{}", directory.get()), owner.inner,
                                      pidNamespaceOf(std::to_string(pid)));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return Status::fromErrno(errno, "make a socket");
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return explain(pid, errno);
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Status::fromErrno(errno, "ask who answers");
  }
  if (peer.pid != pid) {
    return errorf(Code::kUnavailable, "at the socket of process {} process {} answers", pid,
                  peer.pid);
  }
  return Connection(pid, std::move(fd));
}

Result<Message> Connection::ask(const Message& request) {
  const std::string packet = request.serialize();
  const std::string what =
      fmt::format("ask the verbs shim of process {} to {}", pid_, request.verb());
  if (::send(fd_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE) {
    return Status::fromErrno(errno, what);
  }
  std::array<char, Message::kMostBytes + 1> buffer;
  const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) {
    return errorf(Code::kUnavailable, "{}: the process has ended, or closed the connection", what);
  }
  if (got < 0) return Status::fromErrno(errno == EAGAIN ? ETIMEDOUT : errno, what);
  ASSIGN_OR_RETURN(Message reply, Message::parse({buffer.data(), static_cast<std::size_t>(got)}));
  if (reply.verb() == "ok") return reply;
  if (reply.verb() == "error") return readError(reply);
  return errorf(Code::kInternal, "{}: it answered '{}'", what, reply.verb());
}

Result<ShimFacts> Connection::hello() {
  ASSIGN_OR_RETURN(const Message reply, ask(Message("hello")));
  return readShimFacts(reply);
}

Result<std::vector<QueuePairFacts>> Connection::list() {
  std::vector<QueuePairFacts> all;
  while (true) {
    Message request("list");
    request.add("from", all.size());
    ASSIGN_OR_RETURN(const Message reply, ask(request));
    ASSIGN_OR_RETURN(const std::uint64_t total, reply.number("total"));
    const std::size_t before = all.size();
    for (const auto& [key, value] : reply.fields()) {
      if (key != "qp") continue;
      ASSIGN_OR_RETURN(QueuePairFacts facts, readFacts(value));
      all.push_back(std::move(facts));
    }
    if (all.size() >= total || all.size() == before) return all;
  }
}

Result<std::uint64_t> Connection::arm(const Rule& rule) {
  Message request("arm");
  addRule(request, rule);
  ASSIGN_OR_RETURN(const Message reply, ask(request));
  return reply.number("fault");
}

Result<Counters> Connection::counters(std::uint64_t fault) {
  Message request("counters");
  request.add("fault", fault);
  ASSIGN_OR_RETURN(const Message reply, ask(request));
  return readCounters(reply);
}

Result<Counters> Connection::disarm(std::uint64_t fault) {
  Message request("disarm");
  request.add("fault", fault);
  ASSIGN_OR_RETURN(const Message reply, ask(request));
  return readCounters(reply);
}

}  // namespace faultline::injector::verbs
