#include "harness/faultd/service.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <utility>

#include "base/version.h"
#include "harness/strike/plan.h"
#include "injector/safety/policy_file.h"

namespace faultline::faultd {
namespace {

/// Whoever connects is looked at; what may be asked for is up to the policy.
constexpr mode_t kSocketMode = 0666;
/// Connections of one user that have said nothing yet; the oldest makes room for the next.
constexpr std::ptrdiff_t kMostSilentOfUser = 64;
constexpr std::ptrdiff_t kMostSilent = 512;
/// Connections with a child.
constexpr std::ptrdiff_t kMostServedOfUser = 64;
constexpr std::ptrdiff_t kMostServed = 256;
/// Of these nobody but root has the last ones: what is struck can always be looked at.
constexpr std::ptrdiff_t kServedForRoot = 32;
constexpr int kAcceptsOfTurn = 128;
/// Between two looks for what others have left.
constexpr Duration kLookInterval = 1s;
/// Children that undo what others have left.
constexpr std::size_t kMostUndoing = 32;
/// For one of them: a holder that does not end, and a command of the policy, take long.
constexpr Duration kLongestUndo = 5min;

void raiseLimitOfFiles() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

/// Makes the folder of the socket, by hand: a unit has it made. Others could put a file of theirs
/// into one that is not root's alone.
Status makeFolderOf(const std::string& socket) {
  const std::filesystem::path folder = std::filesystem::path(socket).parent_path();
  if (folder.empty()) return safety::trustedPath(".").status();
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return Status::fromErrno(errno, fmt::format("make the socket's folder {}", folder.string()));
  }
  return safety::trustedPath(folder.string()).status();
}

}  // namespace

Result<Service> Service::start(const ServiceOptions& options) {
  RETURN_IF_ERROR(strike::requireNetAdmin());
  ASSIGN_OR_RETURN(run::Interrupt interrupt, run::Interrupt::watch());
  ASSIGN_OR_RETURN(safety::Journal journal, safety::Journal::open(options.journal));
  RETURN_IF_ERROR(makeFolderOf(options.socket));
  Service service(options, std::move(journal), std::move(interrupt));
  const auto claim = [](const std::string& path) -> Result<UniqueFd> {
    auto claimed = launch::claimFile(path);
    if (claimed.status().code() != Code::kAlreadyExists) return claimed;
    return errorf(Code::kAlreadyExists, "another fault service runs here: {}",
                  claimed.status().message());
  };
  ASSIGN_OR_RETURN(service.claimed_journal_, claim(service.journal_.serviceFile()));
  ASSIGN_OR_RETURN(service.claimed_socket_, claim(options.socket + ".lock"));
  raiseLimitOfFiles();
  ASSIGN_OR_RETURN(service.listening_, launch::listenAt(options.socket, kSocketMode));
  log(fmt::format("{} listens at {}, with the policy {} and the journal {}", versionNumber(),
                  options.socket, options.policy, service.journal_.folder()));
  return service;
}

Status Service::serve() {
  look();
  while (!ending_ || !clients_.empty() || !undoing_.empty()) {
    wait();
    if (!ending_ && interrupt_.pending()) beginToEnd();
    accept();
    serveClients();
    look();
  }
  ASSIGN_OR_RETURN(const safety::Kept kept, journal_.read());
  // What cannot be read, nobody undoes.
  const auto left =
      std::ranges::count_if(kept.entries,
                            [](const safety::Entry& entry) { return !safety::isHeld(entry); }) +
      std::ranges::count_if(kept.strange, &safety::Kept::Strange::damaged);
  log(left == 0 ? "ends; nothing is left" : fmt::format("ends; {} strikes are left", left));
  if (left == 0) return okStatus();
  return errorf(Code::kNotRestored, "{} strikes are left; 'faultline restore' tries again", left);
}

void Service::wait() {
  std::vector<pollfd> ready{{ending_ ? -1 : interrupt_.fd(), POLLIN, 0}};
  if (listening_) ready.push_back({listening_.get(), POLLIN, 0});
  for (const auto& [id, undoing] : undoing_) ready.push_back({undoing.process.pidFd(), POLLIN, 0});
  const TimePoint before = now();
  TimePoint until = more_ ? before : next_look_;
  for (const auto& client : clients_) {
    client->addTo(ready);
    until = std::min(until, client->due(before).value_or(until));
  }
  const Duration left = std::max(until - before, Duration(0));
  const auto patience = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  ::poll(ready.data(), ready.size(), static_cast<int>(patience));
}

Status Service::mayServe(uid_t uid) {
  const auto served = [](const auto& client) { return client->hasChild(); };
  const auto ofUser = std::ranges::count_if(
      clients_, [&](const auto& client) { return served(client) && client->peer().uid == uid; });
  const auto most = uid == 0 ? kMostServed : kMostServed - kServedForRoot;
  if (ofUser < kMostServedOfUser &&
      (std::ranges::count_if(clients_, served) < most || displaceOne())) {
    return okStatus();
  }
  return errorf(Code::kUnavailable,
                "the fault service has too many strikes and questions at once, {} of user {}; try "
                "again later",
                ofUser, uid);
}

bool Service::displaceOne() {
  // The oldest of who has most of them: one user cannot push out another one.
  std::map<uid_t, std::ptrdiff_t> shares;
  for (const auto& client : clients_) shares[client->peer().uid] += client->displaceable() ? 1 : 0;
  Client* found = nullptr;
  for (const auto& client : clients_) {
    if (!client->displaceable() || client->peer().uid == 0) continue;
    if (found == nullptr || shares[client->peer().uid] > shares[found->peer().uid]) {
      found = client.get();
    }
  }
  if (found == nullptr) return false;
  found->displace(
      errorf(Code::kUnavailable,
             "the fault service has too many strikes and questions at once, and this one "
             "was not let yet; try again later"),
      now());
  return true;
}

void Service::serveClients() {
  const TimePoint moment = now();
  more_ = false;
  for (const auto& client : clients_) {
    more_ = client->goOn(moment, [&] { return mayServe(client->peer().uid); }) || more_;
    if (client->mayHaveLeft()) next_look_ = moment;
  }
  std::erase_if(clients_, [](const auto& client) { return client->over(); });
}

void Service::accept() {
  for (int i = 0; listening_ && i < kAcceptsOfTurn; ++i) {
    UniqueFd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      // Without a descriptor nobody could be let in: who says nothing makes room.
      if (errno == EMFILE || errno == ENFILE) dropOldest([](const Client&) { return true; });
      return;
    }
    const auto peer = launch::localPeer(fd.get());
    if (!peer.ok()) continue;
    makeRoomFor(peer->uid);
    Task task{.policy = options_.policy,
              .journal = options_.journal,
              .pid = peer->pid,
              .started = safety::holderOf(peer->pid).started,
              .uid = peer->uid,
              .groups = {peer->groups.begin(), peer->groups.end()}};
    clients_.push_back(
        std::make_unique<Client>(std::move(fd), *peer, std::move(task), journal_, now()));
    // What has come with it counts, before the next ones push it out.
    more_ = clients_.back()->goOn(now(), [&] { return mayServe(peer->uid); }) || more_;
  }
}

void Service::dropOldest(const std::function<bool(const Client&)>& which) {
  const auto oldest = std::ranges::find_if(clients_, [&](const auto& client) {
    return client->silent() && !client->over() && which(*client);
  });
  if (oldest != clients_.end()) clients_.erase(oldest);
}

void Service::makeRoomFor(uid_t uid) {
  const auto ofUser = [uid](const Client& client) { return client.peer().uid == uid; };
  const auto silent = [](const auto& client) { return client->silent(); };
  const auto silentOfUser = std::ranges::count_if(
      clients_, [&](const auto& client) { return silent(client) && ofUser(*client); });
  if (silentOfUser >= kMostSilentOfUser) dropOldest(ofUser);
  if (std::ranges::count_if(clients_, silent) >= kMostSilent) {
    dropOldest([](const Client&) { return true; });
  }
}

void Service::reapUndoing() {
  const TimePoint moment = now();
  for (auto one = undoing_.begin(); one != undoing_.end();) {
    auto& [id, undoing] = *one;
    const auto ended = undoing.process.tryWait();
    if (!ended.ok() || *ended) {
      one = undoing_.erase(one);
      continue;
    }
    if (moment >= undoing.until) {
      undoing.until = moment + kLongestUndo;
      log(fmt::format("process {}, which undoes {}, hangs and is killed", undoing.process.pid(),
                      id));
      (void)undoing.process.signal(SIGKILL);
    }
    ++one;
  }
}

void Service::startUndoing(const std::string& id) {
  launch::SpawnOptions options;
  options.body = undoMain;
  options.first_message =
      wire::toJson(Task{.policy = options_.policy, .journal = options_.journal, .undo = {id}});
  auto spawned = launch::Process::spawn(options);
  if (spawned.ok()) {
    undoing_.emplace(id, Undoing{*std::move(spawned), now() + kLongestUndo});
  } else {
    log(spawned.status().message());
  }
}

void Service::look() {
  reapUndoing();
  const TimePoint moment = now();
  if (moment < next_look_) return;
  next_look_ = moment + kLookInterval;
  const auto kept = journal_.read();
  if (!kept.ok()) {
    logOnce(kept.status().message());
    return;
  }
  for (const auto& file : kept->strange) {
    logOnce(fmt::format("left alone: {}: {}", file.path, file.why));
  }
  std::vector<std::string> left;
  for (const safety::Entry& entry : kept->entries) {
    if (!safety::isHeld(entry) || safety::isOverdue(entry, moment)) left.push_back(entry.id);
  }
  // One that waits for a holder to end keeps no other one waiting.
  for (const std::string& id : schedule_.due(left, moment)) {
    if (undoing_.size() < kMostUndoing && !undoing_.contains(id)) startUndoing(id);
  }
}

void Service::logOnce(const std::string& line) {
  if (told_.insert(line).second) log(line);
}

void Service::beginToEnd() {
  ending_ = true;
  log("was told to end: takes back what it holds");
  listening_.reset();
  ::unlink(options_.socket.c_str());
  for (const auto& client : clients_) {
    client->end(errorf(Code::kAborted, "the fault service of this host ends"), now());
  }
}

}  // namespace faultline::faultd
