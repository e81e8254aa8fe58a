#include "resilient_ccl/nccl/directory.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <span>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/thread.h"
#include "resilient_ccl/fabric/route_lookup.h"
#include "resilient_ccl/nccl/nic_path.h"
#include "resilient_ccl/nccl/processors.h"

namespace faultline::nccl {
namespace {

/// Containers share names and process numbers: the address tells them apart.
std::string processName(const Interface& management) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  (void)gethostname(host.data(), host.size() - 1);
  const transport::tcp::Endpoint here{.address = management.address, .port = 0};
  const std::string address = here.toString();
  return nameOfProcess(host.data(), getpid(), address.substr(0, address.find(':')));
}

/// By the names that the interfaces have now.
std::vector<fabric::Nic> railsOf(const std::vector<Device>& devices) {
  const auto network = fabric::readAddresses();
  std::vector<fabric::Nic> rails;
  for (const Device& device : devices) {
    const Interface& rail = device.interface;
    const std::string name = network.ok() ? presentName(*network, rail) : rail.name;
    // Loopback is for trials on one machine; it cannot be bound to.
    rails.push_back({.device = rail.loopback ? "" : name, .address = rail.address});
  }
  return rails;
}

std::vector<int> prefixesOf(const std::vector<Device>& devices) {
  std::vector<int> prefixes;
  for (const Device& device : devices) prefixes.push_back(device.interface.prefix);
  return prefixes;
}

std::vector<std::string> namesAtTheStart(const std::vector<Device>& devices) {
  std::vector<std::string> names;
  for (const Device& device : devices) {
    names.push_back(device.interface.loopback ? "" : device.interface.name);
  }
  return names;
}

}  // namespace

Directory::Directory(const Options& options, const std::vector<Device>& devices,
                     const Interface& management)
    : options_(options),
      devices_(devices),
      management_(management),
      terms_{.rails = static_cast<std::uint32_t>(devices.size()),
             .chunkBytes = static_cast<std::uint32_t>(options.chunkBytes),
             .policy = static_cast<std::uint32_t>(options.policy),
             .smallMessage = static_cast<std::uint32_t>(options.smallMessage)},
      identity_(std::make_shared<const Identity>(Identity{.jobKey = options.jobKey})),
      name_(processName(management)) {}

Result<std::unique_ptr<Directory>> Directory::create(const Options& options,
                                                     const std::vector<Device>& devices,
                                                     const Interface& management) {
  std::unique_ptr<Directory> directory(new Directory(options, devices, management));
  RETURN_IF_ERROR(directory->open());
  return directory;
}

Status Directory::open() {
  ASSIGN_OR_RETURN(
      door_,
      Door::open({.address = management_.address,
                  .self = identity_,
                  .token = token_,
                  .patience = options_.giveUp,
                  .answer = [this](const Greeting& greeting) { return answerTo(greeting); }}));
  rendezvous_ = door_->endpoint();
  wakeup_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wakeup_) return callRefused(errno, "eventfd2", "create an event descriptor");
  ASSIGN_OR_RETURN(thread_, startThread("faultline", [this] { run(); }));
  return startIoThreads();
}

Status Directory::startIoThreads() {
  const int rails = static_cast<int>(devices_.size());
  const int count = options_.ioThreads == Options::kAutomatic
                        ? automaticIoThreads(usableProcessors(), rails)
                        : options_.ioThreads;
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(ioThreads_.emplace_back(), transport::tcp::IoThread::start());
  }
  return okStatus();
}

Directory::~Directory() {
  finish();
  stop_ = true;
  const std::uint64_t one = 1;
  (void)!write(wakeup_.get(), &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
}

void Directory::finish() {
  if (std::exchange(finished_, true)) return;
  const std::vector<std::shared_ptr<Pair>> pairs = allPairs();
  const TimePoint drained = now() + options_.giveUp;
  for (const auto& pair : pairs) {
    if (pair->drain(drained)) continue;
    spdlog::warn("{} has not got all that was sent to it within FAULTLINE_GIVE_UP={}: lost",
                 pair->peer(), formatDuration(options_.giveUp));
  }
  const TimePoint heard = now() + kGoodbye;
  for (const auto& pair : pairs) pair->sayGoodbye(heard);
}

void Directory::abandon() {
  for (const auto& pair : allPairs()) pair->abandon();
}

// --- pairs ---

std::vector<std::shared_ptr<Pair>> Directory::allPairs() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Pair>> pairs;
  for (const auto& [key, pair] : pairs_) pairs.push_back(pair);
  return pairs;
}

/// Under the lock.
Result<std::shared_ptr<Pair>> Directory::pairWith(const ProcessId& process, int side,
                                                  const std::string& name) {
  std::shared_ptr<Pair>& pair = pairs_[{process, side}];
  if (pair && pair->failed()) {
    gone_.add(pair->account());
    pair.reset();
  }
  if (!pair) {
    auto made = Pair::create({.options = options_,
                              .rails = railsOf(devices_),
                              .firstNames = namesAtTheStart(devices_),
                              .prefixes = prefixesOf(devices_),
                              .partners = partnersOf(devices_),
                              .ioThreads = ioThreads_,
                              .firstIoThread = pairsMade_++ * static_cast<int>(devices_.size()),
                              .management = management_.address,
                              .identity = identity_,
                              .side = side,
                              .self = name_,
                              .peer = name,
                              .failure = failure_});
    if (!made.ok()) {
      pairs_.erase({process, side});
      return made.status();
    }
    pair = *made;
  }
  pair->want();
  return pair;
}

Accounts Directory::accounts() const {
  const std::lock_guard lock(mutex_);
  Accounts accounts = gone_;
  for (const auto& [key, pair] : pairs_) accounts.add(pair->account());
  accounts.callersRefused += door_->refused();
  accounts.answersRefused += attempts_.refused();
  return accounts;
}

// --- the side that listens ---

std::uint64_t Directory::listen() {
  const std::lock_guard lock(mutex_);
  listeners_.try_emplace(++numbers_);
  return numbers_;
}

Handle Directory::handleOf(std::uint64_t listener) const {
  return {.rendezvous = rendezvous_,
          .process = self_,
          .token = token_,
          .listener = listener,
          .name = name_,
          .node = node_};
}

void Directory::closeListener(std::uint64_t listener) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(listener);
}

Result<std::unique_ptr<Connection>> Directory::accept(std::uint64_t listener) {
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) {
    return errorf(Code::kInvalidArgument, "accept on a listener that has been closed");
  }
  auto& arrived = found->second.arrived;
  if (arrived.empty()) return std::unique_ptr<Connection>();
  const auto [number, pair] = arrived.front();
  const Result<bool> ready = pair->ready();
  if (ready.ok() && !*ready) return std::unique_ptr<Connection>();
  arrived.pop_front();
  RETURN_IF_ERROR(ready.status());
  return Pair::open(pair, number, /*sends=*/false);
}

Answer Directory::answerTo(const Greeting& greeting) {
  if (greeting.terms != terms_) {
    const auto words = [](const std::string& who, const Terms& terms) {
      return fmt::format("{} has {} rails, chunks of {} bytes, small messages of {}, strategy {}",
                         who, terms.rails, terms.chunkBytes, terms.smallMessage, terms.policy);
    };
    return {.refusal =
                fmt::format("{}; {}: set FAULTLINE_NICS, FAULTLINE_CHUNK, FAULTLINE_SMALL and "
                            "FAULTLINE_NET_STRATEGY alike on all nodes",
                            words(greeting.name, greeting.terms), words(name_, terms_))};
  }
  return welcome(greeting);
}

Answer Directory::welcome(const Greeting& greeting) {
  const std::lock_guard lock(mutex_);
  const auto listener = listeners_.find(greeting.listener);
  if (listener == listeners_.end()) return {.refusal = "its listener has been closed"};
  const ProcessId caller = greeting.process();
  const int side = caller < self_ || caller == self_ ? 1 : 0;
  // A fabric that the other end has given up is not met again: one more try makes a new one.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto pair = pairWith(caller, side, greeting.name);
    if (!pair.ok()) return {.refusal = pair.status().message()};
    const Status met = (*pair)->meet(greeting.key, greeting.address, greeting.incarnation);
    if (!met.ok() && (met.code() != Code::kAborted || attempt > 0)) {
      return {.refusal = met.message()};
    }
    if (!met.ok()) continue;
    if (listener->second.welcomed.emplace(caller, greeting.incarnation, greeting.connection)
            .second) {
      listener->second.arrived.emplace_back(greeting.connection, *pair);
    }
    return {.refusal = {}, .incarnation = (*pair)->incarnation(), .address = (*pair)->address()};
  }
  return {.refusal = "the two do not agree which of their fabrics is the current one"};
}

// --- the side that connects ---

Result<std::uint64_t> Directory::connect(const Handle& to, int device) {
  const std::lock_guard lock(mutex_);
  const TimePoint time = now();
  const int side = self_ < to.process || self_ == to.process ? 0 : 1;
  ASSIGN_OR_RETURN(auto pair, pairWith(to.process, side, to.name));
  std::string doubt = pair->met() ? "" : doubtAbout(to);
  if (!doubt.empty()) spdlog::warn("{}", doubt);
  const std::uint32_t connection = pair->newConnection();
  ASSIGN_OR_RETURN(auto call, Call::begin({.from = management_.address,
                                           .to = to,
                                           .self = identity_,
                                           .greeting = greetingFor(to, *pair, connection),
                                           .deadline = time + options_.giveUp,
                                           .patience = options_.giveUp,
                                           .doubt = std::move(doubt)}));
  const std::uint64_t number = attempts_.add({.call = std::move(call),
                                              .peer = to.name,
                                              .pair = std::move(pair),
                                              .connection = connection,
                                              .device = device,
                                              .asked = time});
  const std::uint64_t one = 1;
  (void)!write(wakeup_.get(), &one, sizeof(one));
  return number;
}

/// Where another node has given an address that this one has as well: what is sent to it never
/// leaves. Said, and tried all the same: a node may look like two.
std::string Directory::doubtAbout(const Handle& to) const {
  if (to.node == 0 || node_ == 0 || to.node == node_) return "";
  const auto route = fabric::lookUpRoute(management_.address, to.rendezvous.address, "");
  const bool same = to.rendezvous.address == management_.address;
  if (!same && (!route.ok() || *route != fabric::Route::kRemains)) return "";
  return fmt::format(
      "{} is on another node, and its address for the meeting is one of this node, too: it is that "
      "of the loopback interface or of a bridge of containers, or was given twice. Name an "
      "interface over which the nodes reach each other in FAULTLINE_MANAGEMENT (here it is {}), on "
      "all nodes",
      to.name, management_.name);
}

Result<std::unique_ptr<Connection>> Directory::finish(std::uint64_t attempt) {
  const std::lock_guard lock(mutex_);
  return attempts_.finish(attempt, now());
}

Greeting Directory::greetingFor(const Handle& to, const Pair& pair,
                                std::uint32_t connection) const {
  return {.incarnation = pair.incarnation(),
          .listener = to.listener,
          .connection = connection,
          .terms = terms_,
          .name = name_,
          .address = pair.address()};
}

// --- the thread ---

void Directory::sleep() {
  waits_.clear();
  waits_.push_back({.fd = wakeup_.get(), .events = POLLIN, .revents = 0});
  door_->waitFor(waits_, now());
  {
    const std::lock_guard lock(mutex_);
    attempts_.waitFor(waits_);
  }
  // Pairs, and what a full socket did not take, are looked at again soon enough.
  constexpr int kMilliseconds = 1;
  (void)::poll(waits_.data(), waits_.size(), kMilliseconds);
  std::uint64_t rung;
  (void)!read(wakeup_.get(), &rung, sizeof(rung));
}

/// Under the lock. A pair whose peer is gone, or has not been met, is kept only as long as somebody
/// may ask it.
void Directory::forget(std::span<const Entry> ended) {
  constexpr int kHere = 2;  // in pairs_ and in `ended`
  for (const auto& [key, pair] : ended) {
    const auto found = pairs_.find(key);
    if (found == pairs_.end() || found->second != pair || pair.use_count() > kHere) continue;
    if (pair->met()) gone_.add(pair->account());
    pairs_.erase(found);
  }
}

void Directory::run() {
  std::vector<Entry> pairs;
  while (!stop_) {
    sleep();
    const TimePoint time = now();
    door_->attend(time);
    {
      const std::lock_guard lock(mutex_);
      attempts_.advance(time);
      pairs.assign(pairs_.begin(), pairs_.end());
    }
    std::erase_if(pairs, [&](const Entry& entry) { return entry.second->tend(time); });
    if (!pairs.empty()) {
      const std::lock_guard lock(mutex_);
      forget(pairs);
    }
    pairs.clear();
  }
}

}  // namespace faultline::nccl
