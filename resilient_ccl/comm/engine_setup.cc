// How a process joins a job: what it tells the others of itself, until all have their rails.

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "base/limits.h"
#include "base/log.h"
#include "base/system_calls.h"
#include "base/thread.h"
#include "resilient_ccl/comm/engine.h"

namespace faultline::comm {
namespace {

/// What a process tells the others of itself, besides its addresses.
struct Introduction {
  transport::tcp::Endpoint door;
  std::uint64_t schedule = 0;  ///< digest of CommunicatorOptions::written; 0: it has none
};

/// All of it in one order: numbers as this machine has them, as in ProcessAddress.
template <typename Introduced, typename Visit>
void eachNumber(Introduced& introduction, const Visit& visit) {
  visit(introduction.door.address);
  visit(introduction.door.port);
  visit(introduction.schedule);
}

std::string introduce(const Introduction& introduction, const fabric::ProcessAddress& address) {
  std::string bytes;
  eachNumber(introduction, [&](const auto& number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
  });
  return bytes + address.serialize();
}

Result<fabric::ProcessAddress> parseIntroduction(const std::string& bytes,
                                                 Introduction& introduction) {
  std::size_t read = 0;
  bool complete = true;
  eachNumber(introduction, [&](auto& number) {
    complete = complete && bytes.size() - read >= sizeof(number);
    if (!complete) return;
    std::memcpy(&number, bytes.data() + read, sizeof(number));
    read += sizeof(number);
  });
  if (!complete) {
    return errorf(Code::kInvalidArgument, "a process address of {} bytes", bytes.size());
  }
  return fabric::ProcessAddress::parse(bytes.substr(read));
}

/// All ranks do the same operations, or none begins.
Status checkSchedules(const std::vector<std::uint64_t>& digests) {
  for (std::size_t rank = 1; rank < digests.size(); ++rank) {
    if (digests[rank] == digests[0]) continue;
    return errorf(
        Code::kInvalidArgument,
        "rank {} has another schedule than rank 0 (digests {:016x} and {:016x}; 0: none): "
        "give all ranks the same text",
        rank, digests[rank], digests[0]);
  }
  return okStatus();
}

}  // namespace

Result<std::shared_ptr<Engine>> Engine::start(const CommunicatorOptions& options) {
  std::shared_ptr<Engine> engine(new Engine(options));
  ASSIGN_OR_RETURN(UniqueFd door,
                   transport::tcp::openListener({options.fabric.managementAddress, "", 0}));
  engine->door_ = std::make_shared<const UniqueFd>(std::move(door));
  RETURN_IF_ERROR(engine->open({}));
  return engine;
}

Result<std::shared_ptr<Engine>> Engine::restart(const CommunicatorOptions& options,
                                                const Engine& failed, UniqueFd listener) {
  std::shared_ptr<Engine> engine(new Engine(options));
  engine->door_ = failed.door_;
  RETURN_IF_ERROR(engine->open(std::move(listener)));
  return engine;
}

Status Engine::open(UniqueFd listener) {
  const TimePoint deadline = now() + options_.setupTimeout;
  fabric::FabricOptions fabricOptions = options_.fabric;
  fabricOptions.self = options_.rank;
  fabricOptions.recorder = recorder_.get();
  ASSIGN_OR_RETURN(
      fabric_, fabric::Fabric::create(fabricOptions, static_cast<fabric::FabricClient&>(*this)));
  ASSIGN_OR_RETURN(bootstrap_, Bootstrap::connect({.rank = options_.rank,
                                                   .size = options_.size,
                                                   .jobKey = fabricOptions.jobKey,
                                                   .address = fabricOptions.managementAddress,
                                                   .rendezvous = options_.rendezvous,
                                                   .listener = std::move(listener),
                                                   .timeout = options_.setupTimeout}));
  ASSIGN_OR_RETURN(const transport::tcp::Endpoint door,
                   transport::tcp::localEndpoint(this->door()));
  ASSIGN_OR_RETURN(
      const std::vector<std::string> blobs,
      bootstrap_->allGather(introduce(
          {.door = door, .schedule = options_.written == nullptr ? 0 : options_.written->digest()},
          fabric_->address())));
  std::vector<fabric::ProcessAddress> addresses;
  std::vector<std::uint64_t> schedules;
  for (const std::string& blob : blobs) {
    Introduction introduction;
    ASSIGN_OR_RETURN(addresses.emplace_back(), parseIntroduction(blob, introduction));
    doors_.push_back(introduction.door);
    hosts_.push_back(addresses.back().host);
    schedules.push_back(introduction.schedule);
  }
  RETURN_IF_ERROR(fabric_->connect(addresses));
  // All know it, and stay until all have heard it.
  if (const Status same = checkSchedules(schedules); !same.ok()) fail(same);
  RETURN_IF_ERROR(awaitRails(deadline));
  bool joined = false;
  if (!failure_) {
    ASSIGN_OR_RETURN(joined, awaitOthers(deadline));
  }
  if (!joined) {
    // All have the same word then, and have heard it.
    while (now() < failedAt_ + kAbortTime) (void)fabric_->poll(kPollTime);
    return *failure_;
  }
  if (const std::string missing = fabric_->missingRails(); !missing.empty()) {
    spdlog::warn("begins without {} (not connected within {})", missing,
                 formatDuration(options_.railGrace));
  }
  fabric_->start();
  if (options_.planned) {
    planning_ = std::make_unique<Planning>(
        *fabric_, options_.rank, static_cast<int>(fabricOptions.nics.size()), options_.health,
        PlanningCalls{
            .fail = [this](const Status& why) { fail(why); },
            .event =
                [this](PlanEvent event) {
                  const std::lock_guard lock(mutex_);
                  events_.planned(std::move(event));
                },
            .tested =
                [this](const PortTestEvent& event) {
                  const std::lock_guard lock(mutex_);
                  events_.tested(event);
                },
            .onProgressThread = [this](auto call) { onProgressThread(std::move(call)); }});
  }

  wakeup_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wakeup_) return callRefused(errno, "eventfd2", "create an event descriptor");
  RETURN_IF_ERROR(fabric_->watch(wakeup_.get(), [this] {
    std::uint64_t count;
    countSystemCall();
    (void)!read(wakeup_.get(), &count, sizeof(count));
  }));
  for (const auto& [rank, fd] : bootstrap_->connections()) {
    RETURN_IF_ERROR(
        fabric_->watch(fd, [this, rank = rank, fd = fd] { connectionReadable(rank, fd); }));
  }
  ASSIGN_OR_RETURN(thread_, startThread("progress", [this] { progress(); }));
  return okStatus();
}

Status Engine::awaitRails(TimePoint deadline) {
  const bool mayMiss = options_.fabric.link.resilient;
  const TimePoint begin = now(), grace = begin + options_.railGrace;
  const TimePoint end = std::min(deadline, grace + options_.fabric.link.giveUp);
  while (!failure_ && !fabric_->allRailsUp()) {
    const bool reached = mayMiss && fabric_->allPeersReached();
    if (reached && now() >= grace) break;
    if (now() >= end) {
      fail(errorf(Code::kDeadlineExceeded,
                  "{} could be connected within {} ({}): look at these ports, their addresses and "
                  "the network between them",
                  mayMiss ? "not one rail to some rank" : "not all rails",
                  formatDuration(end - begin), fabric_->missingRails()));
    }
    RETURN_IF_ERROR(fabric_->poll(kPollTime));
  }
  return okStatus();
}

/// Nobody begins before everybody has what it needs; false: somebody will not get it, and all know.
Result<bool> Engine::awaitOthers(TimePoint deadline) {
  constexpr const char* kReady = "ready";
  std::set<int> silent;
  for (const auto& [rank, fd] : bootstrap_->connections()) {
    RETURN_IF_ERROR(fabric_->watch(fd, [this, &silent, fd = fd] {
      fabric_->unwatch(fd);
      silent.erase(fd);
    }));
    silent.insert(fd);
  }
  Status told = bootstrap_->offer(kReady);
  // The word of one who has begun, and failed, may be faster than that all are ready.
  const auto end = [&] { return failure_ ? failedAt_ + kAgreementTime : deadline; };
  while (told.ok() && !silent.empty() && now() < end()) {
    RETURN_IF_ERROR(fabric_->poll(kPollTime));
  }
  for (const int fd : silent) fabric_->unwatch(fd);
  if (told.ok() && !silent.empty()) {
    told = errorf(Code::kDeadlineExceeded, "not all ranks had their rails within {}",
                  formatDuration(options_.setupTimeout));
  }
  if (told.ok()) told = bootstrap_->collect(kReady).status();
  if (!told.ok()) fail(told);
  return told.ok();
}

}  // namespace faultline::comm
