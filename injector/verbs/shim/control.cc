#include "injector/verbs/shim/control.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>

#include "injector/verbs/address.h"

namespace faultline::injector::verbs::shim {
namespace {

constexpr int kBacklog = 8;
constexpr std::size_t kMostClients = 16;
constexpr std::uint64_t kListPage = 100;  // each far below 300 bytes
constexpr int kSoonMs = 20;
/// How long nobody is let in when the process has no descriptor left for one. Who waits keeps the
/// listener readable, and the thread would do nothing but try.
constexpr Duration kPause = 100ms;
/// For the thread to be done with what it does: it waits for no more than calls into a provider. A
/// program that ends is not held up by it for longer.
constexpr Duration kLongestFarewell = 200ms;
constexpr Duration kFarewellPause = 1ms;

std::mutex g_mutex;
Control* g_control = nullptr;  // for good: the process ends with it

std::string folderOf(uid_t user) {
  const char* const chosen = std::getenv(kFolderVariable);
  return chosen != nullptr && *chosen != '\0' ? chosen : defaultFolder(user);
}

Result<sockaddr_un> addressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return errorf(Code::kInvalidArgument, "{} is too long for a socket; set {} to a shorter folder",
                  path, kFolderVariable);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

/// A folder that only this user can put something into.
Status makeFolder(const std::string& folder) {
  // The controller, which looks for it from elsewhere, refuses it as well (connection.cc).
  if (!folder.starts_with('/')) {
    return errorf(Code::kInvalidArgument,
                  "{}={} is no absolute path: set it to one that begins "
                  "with '/'",
                  kFolderVariable, folder);
  }
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return Status::fromErrno(errno, fmt::format("make the folder {}", folder));
  }
  struct stat facts {};
  if (::lstat(folder.c_str(), &facts) != 0) {
    return Status::fromErrno(errno, fmt::format("look at the folder {}", folder));
  }
  const bool safe = S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid() &&
                    (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (safe) return okStatus();
  return errorf(Code::kPermissionDenied,
                "{} is no folder that only this user can write to; set {} to one", folder,
                kFolderVariable);
}

/// Sockets of processes that were killed: nobody listens there. Whoever listens and does not
/// answer, since it is stopped, is not waited for (EAGAIN).
void removeStale(const std::string& folder) {
  DIR* const directory = ::opendir(folder.c_str());
  if (directory == nullptr) return;
  while (const dirent* const entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (!name.ends_with(".sock")) continue;
    const auto address = addressOf(folder + "/" + name);
    const UniqueFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!address.ok() || !probe) continue;
    const auto* const where = reinterpret_cast<const sockaddr*>(&*address);
    if (::connect(probe.get(), where, sizeof(*address)) != 0 && errno == ECONNREFUSED) {
      ::unlink(address->sun_path);
    }
  }
  ::closedir(directory);
}

bool mayControl(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == 0 || peer.uid == ::geteuid());
}

bool send(int fd, const Message& message) {
  const std::string packet = message.serialize();
  return ::send(fd, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(packet.size());
}

/// Whether the other end has closed: what it has sent before that can be read all the same.
bool hasLeft(int fd) {
  pollfd end{fd, POLLRDHUP, 0};
  return ::poll(&end, 1, 0) > 0;
}

Status requireOnly(const Message& message, std::initializer_list<std::string_view> keys) {
  for (const auto& [key, value] : message.fields()) {
    if (std::ranges::find(keys, std::string_view(key)) != keys.end()) continue;
    return errorf(Code::kInvalidArgument, "'{}' has no field '{}'", message.verb(), key);
  }
  return okStatus();
}

/// A program of real-time threads, each on a processor of its own, would never let this one run.
void runAsUsual() {
  const int policy = ::sched_getscheduler(0);
  if (policy != SCHED_FIFO && policy != SCHED_RR) return;
  const sched_param usual{};
  (void)::sched_setscheduler(0, SCHED_OTHER, &usual);
  cpu_set_t anywhere;
  std::memset(&anywhere, 0xFF, sizeof anywhere);
  (void)::sched_setaffinity(0, sizeof anywhere, &anywhere);
}

__attribute__((destructor)) void atEnd() { Control::farewell(); }

}  // namespace

void Control::ensure() {
  const std::lock_guard lock(g_mutex);
  if (g_control != nullptr) return;
  const auto started = start();
  if (started.ok()) {
    g_control = *started;
    return;
  }
  static bool told = false;
  if (!std::exchange(told, true)) {
    std::fprintf(stderr, "faultline-verbs: no faults can be put into this process: %s\n",
                 started.status().message().c_str());
  }
}

Result<Control*> Control::start() {
  const std::string folder = folderOf(::geteuid());
  const pid_t pid = ::getpid();
  auto* const control = new Control(socketPath(folder, pid, pidNamespaceOf("self")));
  control->pid_ = pid;
  if (const Status status = control->listen(folder); !status.ok()) {
    delete control;
    return status;
  }
  // The program's signals are for its own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Shim::instance().onDoom([wake = control->wake_.get()] {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake, &one, sizeof(one));
  });
  Status status;
  try {
    control->thread_ = std::thread([control] { control->serve(); });
  } catch (const std::system_error& error) {  // not through the program, which called in C
    status = Status::fromErrno(error.code().value(), "start the thread that answers controllers");
    Shim::instance().onDoom(nullptr);
    ::unlink(control->path_.c_str());
    delete control;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!status.ok()) return status;
  return control;
}

Status Control::listen(const std::string& folder) {
  RETURN_IF_ERROR(makeFolder(folder));
  removeStale(folder);
  // A socket that is bound and does not listen yet is like a stale one: it gets its name when it
  // does. Both may be there of an earlier program of this process, before it called exec().
  const std::string unready = path_ + "~";
  ASSIGN_OR_RETURN(const sockaddr_un address, addressOf(unready));
  listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener_ || !wake_) return Status::fromErrno(errno, "make the control socket");
  ::unlink(unready.c_str());
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::listen(listener_.get(), kBacklog) == 0 && ::rename(unready.c_str(), path_.c_str()) == 0) {
    return okStatus();
  }
  const int error = errno;
  ::unlink(unready.c_str());
  return Status::fromErrno(error, fmt::format("listen at {}", path_));
}

void Control::beforeFork() {
  g_mutex.lock();
  if (g_control != nullptr) g_control->serve_mutex_.lock();
}

void Control::afterForkInParent() {
  if (g_control != nullptr) g_control->serve_mutex_.unlock();
  g_mutex.unlock();
}

void Control::afterForkInChild() {
  Control* const parents = std::exchange(g_control, nullptr);
  if (parents != nullptr) parents->serve_mutex_.unlock();
  g_mutex.unlock();
  if (parents == nullptr) return;
  parents->listener_.reset();
  parents->wake_.reset();
  parents->clients_.clear();
  // The object itself stays: its std::thread is one that this process does not have.
}

void Control::farewell() {
  if (g_control == nullptr || g_control->pid_ != ::getpid()) return;
  ::unlink(g_control->path_.c_str());
  g_control->sayLast();
}

/// A program that fails by a fault may be gone before anybody has asked what it ran into.
void Control::sayLast() {
  const TimePoint deadline = now() + kLongestFarewell;
  while (!serve_mutex_.try_lock()) {
    if (now() >= deadline) return;
    std::this_thread::sleep_for(kFarewellPause);
  }
  for (const Client& client : clients_) {
    for (const Lease& lease : client.leases) {
      const auto counters = Shim::instance().counters(lease.fault);
      if (!counters.ok()) continue;
      Message message{std::string(kLastWord)};
      message.add("fault", lease.fault);
      addCounters(message, *counters);
      send(client.fd.get(), message);
    }
  }
  serve_mutex_.unlock();
}

void Control::serve() {
  runAsUsual();
  bool soon = false;
  std::unique_lock lock(serve_mutex_);
  while (true) {
    const TimePoint at = now();
    // poll() passes over one that is negative.
    const int listener = at < accept_from_ ? -1 : listener_.get();
    std::vector<pollfd> watched{{listener, POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    for (const Client& client : clients_) watched.push_back({client.fd.get(), POLLIN, 0});
    const int timeout = timeoutMs(soon, at);
    lock.unlock();
    // A process may allow itself fewer descriptors than it has, and poll() then takes none.
    if (::poll(watched.data(), watched.size(), timeout) < 0 && errno != EINTR) {
      std::this_thread::sleep_for(kPause);
    }
    lock.lock();
    // The program closes descriptors that it does not know, ours among them.
    if (((watched[0].revents | watched[1].revents) & POLLNVAL) != 0) return abandon();
    std::uint64_t ignored = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &ignored, sizeof(ignored));
    soon = Shim::instance().work();
    for (std::size_t i = clients_.size(); i-- > 0;) {
      if (watched[i + 2].revents == 0 || answer(clients_[i])) continue;
      disarmAll(clients_[i]);
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
      soon = true;
    }
    if (watched[0].revents != 0) accept();
    endLeases(now());
  }
}

void Control::abandon() {
  Shim::instance().onDoom(nullptr);
  for (Client& client : clients_) {
    disarmAll(client);
    client.fd.release();  // it may be the program's by now
  }
  clients_.clear();
  listener_.release();
  wake_.release();
  ::unlink(path_.c_str());
}

int Control::timeoutMs(bool soon, TimePoint at) const {
  std::optional<TimePoint> first;
  if (at < accept_from_) first = accept_from_;
  for (const Client& client : clients_) {
    for (const Lease& lease : client.leases) first = std::min(first.value_or(lease.end), lease.end);
  }
  int timeout = soon ? kSoonMs : -1;
  if (first) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - at).count();
    const int until = static_cast<int>(std::max<std::int64_t>(left, 0));
    timeout = timeout < 0 ? until : std::min(timeout, until);
  }
  return timeout;
}

void Control::accept() {
  UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) {
    const bool gone = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    if (!gone) accept_from_ = now() + kPause;
    return;
  }
  if (!mayControl(fd.get())) {
    send(fd.get(), errorMessage(errorf(Code::kPermissionDenied,
                                       "only the process's own user and root may control it")));
    return;
  }
  if (!makeRoom()) {
    send(fd.get(), errorMessage(errorf(Code::kUnavailable, "{} controllers are connected already",
                                       kMostClients)));
    return;
  }
  clients_.push_back({std::move(fd), now()});
}

bool Control::makeRoom() {
  if (clients_.size() < kMostClients) return true;
  auto longest = clients_.end();
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    if (!client->leases.empty()) continue;
    if (longest == clients_.end() || client->heard < longest->heard) longest = client;
  }
  if (longest == clients_.end()) return false;
  clients_.erase(longest);
  return true;
}

bool Control::answer(Client& client) {
  std::array<char, Message::kMostBytes + 1> buffer;
  const ssize_t size = ::recv(client.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) return false;
  const auto request = Message::parse({buffer.data(), static_cast<std::size_t>(size)});
  if (!request.ok()) {
    send(client.fd.get(), errorMessage(request.status()));
    return false;  // whoever it is, it is no controller of ours
  }
  // Nobody would know of it, nor take it back, if whoever wants it armed has stopped waiting.
  if (request->verb() == "arm" && hasLeft(client.fd.get())) return false;
  const auto reply = handle(client, *request);
  client.heard = now();
  for (Lease& lease : client.leases) lease.end = client.heard + lease.length;
  return send(client.fd.get(), reply.ok() ? *reply : errorMessage(reply.status()));
}

Result<Message> Control::handle(Client& client, const Message& request) {
  Message reply("ok");
  if (request.verb() == "arm") return arm(client, request);
  if (request.verb() == "list") return list(request);
  if (request.verb() == "hello") {
    RETURN_IF_ERROR(requireOnly(request, {}));
    ShimFacts facts = Shim::instance().facts();
    facts.pid = static_cast<std::uint64_t>(pid_);
    addShimFacts(reply, facts);
    return reply;
  }
  if (request.verb() == "counters" || request.verb() == "disarm") {
    RETURN_IF_ERROR(requireOnly(request, {"fault"}));
    ASSIGN_OR_RETURN(const std::uint64_t fault, request.number("fault"));
    const auto lease = std::ranges::find(client.leases, fault, &Lease::fault);
    if (lease == client.leases.end()) {
      return errorf(Code::kNotFound, "this connection has not armed a fault {}, or its lease ended",
                    fault);
    }
    if (request.verb() == "counters") {
      ASSIGN_OR_RETURN(const Counters counters, Shim::instance().counters(fault));
      addCounters(reply, counters);
      return reply;
    }
    client.leases.erase(lease);
    ASSIGN_OR_RETURN(const Counters counters, Shim::instance().disarm(fault));
    addCounters(reply, counters);
    return reply;
  }
  return errorf(Code::kUnsupported, "the shim does not know '{}'", request.verb());
}

Result<Message> Control::list(const Message& request) {
  RETURN_IF_ERROR(requireOnly(request, {"from"}));
  ASSIGN_OR_RETURN(const std::uint64_t from, request.number("from"));
  const std::vector<QueuePairFacts> all = Shim::instance().queuePairs();
  Message reply("ok");
  reply.add("total", all.size());
  for (std::uint64_t i = from; i < all.size() && i < from + kListPage; ++i) {
    reply.add("qp", writeFacts(all[i]));
  }
  return reply;
}

Result<Message> Control::arm(Client& client, const Message& request) {
  ASSIGN_OR_RETURN(const Rule rule, readRule(request));
  ASSIGN_OR_RETURN(const std::uint64_t fault, Shim::instance().arm(rule));
  client.leases.push_back({fault, rule.lease, now() + rule.lease});
  Message reply("ok");
  reply.add("fault", fault);
  return reply;
}

void Control::disarmAll(Client& client) {
  for (const Lease& lease : client.leases) {
    static_cast<void>(Shim::instance().disarm(lease.fault));  // it is armed: the lease says so
  }
  client.leases.clear();
}

void Control::endLeases(TimePoint now) {
  for (Client& client : clients_) {
    std::erase_if(client.leases, [&](const Lease& lease) {
      if (lease.end > now) return false;
      static_cast<void>(Shim::instance().disarm(lease.fault));
      return true;
    });
  }
}

}  // namespace faultline::injector::verbs::shim
