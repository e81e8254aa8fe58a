#include "injector/verbs/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>

#include "base/file_text.h"
#include "base/units.h"
#include "injector/verbs/access.h"
#include "injector/verbs/address.h"
#include "injector/verbs/user_map.h"

namespace faultline::injector::verbs {
namespace {

// What answers is in somebody else's program, and may be anything.
constexpr std::size_t kMostListed = 100'000;
constexpr Duration kListPatience = 20s;

/// The value of a variable in the environment that a process was started with.
std::string variableOf(pid_t pid, std::string_view name) {
  std::istringstream environment(fileText(fmt::format("/proc/{}/environ", pid)));
  for (std::string entry; std::getline(environment, entry, '\0');) {
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return "";
}

struct Owner {
  uid_t user = 0;   ///< effective, as it knows itself
  pid_t inner = 0;  ///< the process's number where it lives, which may be a container
  pid_t parent = 0;
};

/// Where a process lives in a user namespace of its own, as in a rootless container, it is another
/// user there.
uid_t asItKnowsItself(pid_t pid, uid_t user) {
  const auto user_namespace = [](const std::string& process) -> std::optional<ino_t> {
    struct stat facts {};
    if (::stat(("/proc/" + process + "/ns/user").c_str(), &facts) != 0) return std::nullopt;
    return facts.st_ino;
  };
  // Read from inside of the same one, the map would lead to the one around it. Whoever may not know
  // which it is may not control it, either.
  const auto its = user_namespace(std::to_string(pid));
  if (!its || its == user_namespace("self")) return user;
  return userInside(fileText(fmt::format("/proc/{}/uid_map", pid)), user).value_or(user);
}

Result<Owner> ownerOf(pid_t pid) {
  std::istringstream status(fileText(fmt::format("/proc/{}/status", pid)));
  Owner owner;
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "Uid:") words >> owner.user >> owner.user;
    if (key == "PPid:") words >> owner.parent;
    if (key != "NSpid:") continue;
    for (pid_t number = 0; words >> number;) owner.inner = number;
  }
  owner.user = asItKnowsItself(pid, owner.user);
  if (owner.inner != 0) return owner;
  return errorf(Code::kNotFound, "there is no process {}", pid);
}

/// Where its shim listens, as the process itself sees it.
Result<std::string> folderOf(pid_t pid, uid_t user) {
  std::string folder = variableOf(pid, kFolderVariable);
  if (folder.empty()) return defaultFolder(user);
  if (folder.starts_with('/')) return folder;
  // What it is relative to was the working directory of the process when it opened its device.
  return errorf(Code::kUnavailable,
                "process {} was started with {}={}, which is no absolute path, so that its verbs "
                "shim cannot be found: start it with one that begins with '/'",
                pid, kFolderVariable, folder);
}

bool hasShim(pid_t pid) {
  return fileText(fmt::format("/proc/{}/maps", pid)).find("libfaultline-verbs.so") !=
         std::string::npos;
}

/// ", process 7" where the parent of the process has the shim.
std::string parentWithShim(pid_t parent) {
  return parent > 0 && hasShim(parent) ? fmt::format(", process {}", parent) : "";
}

Status explain(pid_t pid, pid_t parent, int error) {
  if (error == EACCES || error == EPERM) {
    return Status(Code::kPermissionDenied, whyRefused(pid, readAccessFacts(pid)));
  }
  if (hasShim(pid)) {
    return errorf(
        Code::kUnavailable,
        "process {} has the verbs shim, but it does not answer: it has not opened an RDMA device "
        "(yet); or it is what fork() has made of a program that had opened one before, and has no "
        "faults until it opens one itself: target the parent{}, or start the program so that it "
        "opens the device after the fork (no daemon); or it could not make its socket and has said "
        "so on its stderr",
        pid, parentWithShim(parent));
  }
  return errorf(Code::kUnavailable, "process {} has no verbs shim: {}", pid, kHowToLoad);
}

}  // namespace

Result<Connection> Connection::open(pid_t pid) {
  ASSIGN_OR_RETURN(const Owner owner, ownerOf(pid));
  ASSIGN_OR_RETURN(const std::string folder, folderOf(pid, owner.user));
  // Through the process's own root, since it may live in a container; and through a descriptor,
  // since the path of a socket is short.
  const std::string place = fmt::format("/proc/{}/root{}", pid, folder);
  const UniqueFd directory(::open(place.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return explain(pid, owner.parent, errno);
  const std::string path = socketPath(fmt::format("/proc/self/fd/{}", directory.get()), owner.inner,
                                      pidNamespaceOf(std::to_string(pid)));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return Status::fromErrno(errno, "make a socket");
  const timeval patience{std::chrono::duration_cast<std::chrono::seconds>(kPatience).count(), 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return explain(pid, owner.parent, errno);
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

std::string Connection::attempt(std::string_view verb) const {
  return fmt::format("ask the verbs shim of process {} to {}", pid_, verb);
}

Status Connection::send(const Message& request) {
  const std::string packet = request.serialize();
  // When it is closed the answer says so, or what came before it.
  if (::send(fd_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
      errno != ECONNRESET) {
    return Status::fromErrno(errno == EAGAIN ? ETIMEDOUT : errno, attempt(request.verb()));
  }
  return okStatus();
}

Result<std::optional<Message>> Connection::receive(std::string_view verb, Duration patience) {
  const TimePoint deadline = now() + patience;
  while (true) {
    pollfd answer{fd_.get(), POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now()).count();
    const int ready = ::poll(&answer, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno != EINTR) return Status::fromErrno(errno, attempt(verb));
    if (ready == 0 && now() >= deadline) return std::optional<Message>();
    if (ready <= 0) continue;
    ASSIGN_OR_RETURN(std::optional<Message> message, read(verb));
    if (message) return message;
  }
}

Result<std::optional<Message>> Connection::read(std::string_view verb) {
  std::array<char, Message::kMostBytes + 1> buffer;
  ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  // Of a program that ended without reading all that it was asked. What it has said before is
  // behind that.
  if (got < 0 && errno == ECONNRESET) {
    got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  }
  if (got == 0 || (got < 0 && errno == ECONNRESET)) {
    return errorf(Code::kUnavailable, "{}: the process has ended, or closed the connection",
                  attempt(verb));
  }
  if (got < 0) return Status::fromErrno(errno, attempt(verb));
  ASSIGN_OR_RETURN(Message reply, Message::parse({buffer.data(), static_cast<std::size_t>(got)}));
  if (reply.verb() == "ok") return std::optional<Message>(std::move(reply));
  if (reply.verb() == "error") return readError(reply);
  if (reply.verb() != kLastWord) {
    return errorf(Code::kInternal, "{}: it answered '{}'", attempt(verb), reply.verb());
  }
  ASSIGN_OR_RETURN(const std::uint64_t fault, reply.number("fault"));
  ASSIGN_OR_RETURN(last_[fault], readCounters(reply));
  return std::optional<Message>();
}

std::optional<Counters> Connection::last(std::uint64_t fault) const {
  const auto found = last_.find(fault);
  return found == last_.end() ? std::nullopt : std::optional<Counters>(found->second);
}

Result<std::optional<Message>> Connection::await(std::string_view verb, Duration patience,
                                                 bool matters) {
  const TimePoint deadline = now() + patience;
  for (;;) {
    const Duration left = std::max(deadline - now(), Duration::zero());
    auto reply = receive(verb, std::min(left, kGiveUpInterval));
    if (!reply.ok() || *reply || now() >= deadline) return reply;
    if (!matters) RETURN_IF_ERROR(unlessGivenUp(giveUp_, attempt(verb)));
  }
}

Result<Message> Connection::ask(const Message& request, bool matters) {
  const bool last = matters && giveUp_ && giveUp_();
  const Duration patience = last ? kLastPatience : kPatience;
  const TimePoint deadline = now() + patience;
  if (std::exchange(awaitsCounters_, false)) {
    // Its answer comes first. What it says does not matter any more, not even that it is an error.
    const auto earlier = await("tell counters", patience, matters);
    if (earlier.status().code() == Code::kAborted) return earlier.status();
    if (earlier.ok() && !earlier->has_value()) return silent(request.verb(), patience);
  }
  RETURN_IF_ERROR(send(request));
  ASSIGN_OR_RETURN(std::optional<Message> reply, await(request.verb(), deadline - now(), matters));
  if (!reply) return silent(request.verb(), patience);
  return *std::move(reply);
}

Status Connection::silent(std::string_view verb, Duration patience) const {
  return errorf(Code::kDeadlineExceeded,
                "{}: it has not answered for {}; the program may have been stopped", attempt(verb),
                formatDuration(patience));
}

Result<ShimFacts> Connection::hello() {
  ASSIGN_OR_RETURN(const Message reply, ask(Message("hello")));
  return readShimFacts(reply);
}

Result<std::vector<QueuePairFacts>> Connection::list() {
  std::vector<QueuePairFacts> all;
  const TimePoint deadline = now() + kListPatience;
  while (all.size() < kMostListed && now() < deadline) {
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
  return errorf(
      Code::kIo,
      "ask the verbs shim of process {} for its queue pairs: the list had no end after {} "
      "of them; no more than {} are read, for no longer than {}",
      pid_, all.size(), kMostListed, formatDuration(kListPatience));
}

Result<std::uint64_t> Connection::arm(const Rule& rule) {
  Message request("arm");
  addRule(request, rule);
  ASSIGN_OR_RETURN(const Message reply, ask(request));
  return reply.number("fault");
}

Status Connection::askCounters(std::uint64_t fault) {
  Message request("counters");
  request.add("fault", fault);
  RETURN_IF_ERROR(send(request));
  awaitsCounters_ = true;
  return okStatus();
}

Result<std::optional<Counters>> Connection::takeCounters(Duration patience) {
  auto reply = receive("tell counters", patience);
  if (reply.ok() && !reply->has_value()) return std::optional<Counters>();
  awaitsCounters_ = false;
  RETURN_IF_ERROR(reply.status());
  ASSIGN_OR_RETURN(const Counters counters, readCounters(**reply));
  return std::optional<Counters>(counters);
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
  ASSIGN_OR_RETURN(const Message reply, ask(request, /*matters=*/true));
  return readCounters(reply);
}

}  // namespace faultline::injector::verbs
