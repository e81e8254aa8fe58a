#include "harness/site/rdma_vm/guest_agent.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/file_text.h"
#include "harness/launch/guard.h"
#include "harness/launch/process.h"
#include "harness/site/rdma_vm/fault_holder.h"
#include "harness/site/rdma_vm/guest_setup.h"
#include "harness/site/rdma_vm/qemu_command.h"
#include "wire/guest.h"

namespace faultline::rdma_vm {

using nlohmann::json;

namespace {

constexpr const char* kPorts = "/sys/class/virtio-ports";
constexpr Duration kPortBudget = 30s;
constexpr int kPortPauseMs = 10;
constexpr Duration kSetupBudget = 60s;
constexpr std::size_t kCopySize = 64 * 1024;

/// The virtio-serial port by its name, which udev would make a link of.
Result<UniqueFd> openPort() {
  const TimePoint deadline = now() + kPortBudget;
  do {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(kPorts), ::closedir);
    while (const dirent* const entry = folder ? ::readdir(folder.get()) : nullptr) {
      const std::string port = entry->d_name;
      std::string name;
      std::ifstream(std::string(kPorts) + "/" + port + "/name") >> name;
      if (name != kAgentPortName) continue;
      UniqueFd fd(::open(("/dev/" + port).c_str(), O_RDWR | O_CLOEXEC));
      if (!fd) return Status::fromErrno(errno, "open /dev/" + port);
      return fd;
    }
    ::poll(nullptr, 0, kPortPauseMs);
  } while (now() < deadline);
  return errorf(Code::kNotFound, "there is no virtio port {}", kAgentPortName);
}

/// Copies until one of the two is over. A virtio port is no socket, and a message channel needs
/// one; it also needs to be read by somebody who waits in the kernel.
void copy(int from, int to) {
  std::array<char, kCopySize> bytes;
  for (;;) {
    const ssize_t size = ::read(from, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    for (ssize_t done = 0; done < size;) {
      const ssize_t written =
          ::write(to, bytes.data() + done, static_cast<std::size_t>(size - done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return;
      done += written;
    }
  }
}

class Agent {
 public:
  explicit Agent(launch::MessageChannel& controller) : controller_(controller) {}
  Status setUp();
  Status serve();

 private:
  struct Job {
    wire::GuardJob programs;
    bool read = false;
    std::optional<launch::Process> guard{};
    bool spoken = false;    // its last word
    bool finished = false;  // and that all went as it should
  };

  Status obey(const wire::ToGuest& message);
  Status start(const wire::StartJob& message);
  Status startGuard(int id, Job job);
  Status relay(int id, Job& job);
  Status sendOutput(int id, const Job& job);
  Status tellHolder(const wire::TellHolder& message);
  Status startHolder(const wire::TellHolder& message);
  Status relayHolder(int id, launch::Process& holder);
  Status tell(const wire::FromGuest& message) { return controller_.send(wire::toJson(message)); }

  launch::MessageChannel& controller_;
  int rails_ = 0;
  std::map<int, Job> jobs_;
  std::map<int, launch::Process> faults_;  // holders
};

Status Agent::setUp() {
  ASSIGN_OR_RETURN(const json message, controller_.receiveWithin(kSetupBudget));
  ASSIGN_OR_RETURN(const auto setup,
                   (wire::firstFromJson<wire::ToGuest, wire::GuestSetup>(message)));
  rails_ = setup.nics - 1;
  RETURN_IF_ERROR(setUpGuest(setup));
  utsname kernel{};
  ::uname(&kernel);
  return tell(wire::GuestReady{kernel.release});
}

Status Agent::serve() {
  for (;;) {
    std::vector<pollfd> ready{{controller_.fd(), POLLIN, 0}};
    for (auto& [id, job] : jobs_) ready.push_back({job.guard->messages().fd(), POLLIN, 0});
    for (auto& [id, holder] : faults_) ready.push_back({holder.messages().fd(), POLLIN, 0});
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) {
      return Status::fromErrno(errno, "wait for messages");
    }
    for (;;) {
      ASSIGN_OR_RETURN(const std::optional<json> message, controller_.receive());
      if (!message) break;
      ASSIGN_OR_RETURN(const auto asked, wire::fromJson<wire::ToGuest>(*message));
      RETURN_IF_ERROR(obey(asked));
    }
    for (auto at = jobs_.begin(); at != jobs_.end();) {
      const auto current = at++;
      RETURN_IF_ERROR(relay(current->first, current->second));
      if (current->second.spoken) jobs_.erase(current);
    }
    for (auto at = faults_.begin(); at != faults_.end();) {
      const auto current = at++;
      RETURN_IF_ERROR(relayHolder(current->first, current->second));
    }
  }
}

Status Agent::obey(const wire::ToGuest& message) {
  if (const auto* const job = std::get_if<wire::StartJob>(&message)) return start(*job);
  if (const auto* const told = std::get_if<wire::TellGuard>(&message)) {
    const auto found = jobs_.find(told->job);
    // One that has just ended needs to be told nothing.
    if (found != jobs_.end()) {
      (void)found->second.guard->messages().send(wire::toJson(told->message));
    }
    return okStatus();
  }
  if (const auto* const told = std::get_if<wire::TellHolder>(&message)) return tellHolder(*told);
  if (const auto* const end = std::get_if<wire::EndFault>(&message)) {
    faults_.erase(end->fault);
    return okStatus();
  }
  if (std::holds_alternative<wire::AskClock>(message)) return tell(wire::ClockTold{now()});
  if (std::holds_alternative<wire::AskRails>(message)) {
    return tell(wire::GuestRails{readRailStates(rails_)});
  }
  return errorf(Code::kInvalidArgument, "a guest is set up once");
}

Status Agent::start(const wire::StartJob& message) {
  const Status started = startGuard(message.job, {.programs = message.guard, .read = message.read});
  if (started.ok()) return started;
  return tell(wire::GuardSaid{message.job, wire::Gone{started.message()}});
}

Status Agent::startGuard(int id, Job job) {
  launch::SpawnOptions options;
  options.body = launch::guardMain;
  options.own_process_namespace = true;
  options.first_message = wire::toJson(wire::ToGuard(job.programs));
  ASSIGN_OR_RETURN(launch::Process guard, launch::Process::spawn(options));
  job.guard.emplace(std::move(guard));
  jobs_.insert_or_assign(id, std::move(job));
  return okStatus();
}

Status Agent::relay(int id, Job& job) {
  while (!job.spoken) {
    Result<std::optional<json>> message = job.guard->messages().receive();
    if (!message.ok()) {
      job.spoken = true;
      return tell(wire::GuardSaid{id, wire::Gone{message.status().message()}});
    }
    if (!*message) return okStatus();
    auto said = wire::fromJson<wire::FromGuard>(**message);
    if (!said.ok()) {  // its guard ends with the job
      job.spoken = true;
      return tell(wire::GuardSaid{id, wire::Gone{said.status().message()}});
    }
    job.finished = std::holds_alternative<wire::GuardFinished>(*said);
    job.spoken = job.finished || std::holds_alternative<wire::GuardError>(*said);
    RETURN_IF_ERROR(tell(wire::GuardSaid{id, std::move(*said)}));
  }
  return job.read && job.finished ? sendOutput(id, job) : okStatus();
}

Status Agent::sendOutput(int id, const Job& job) {
  wire::GuestOutput output{.job = id};
  for (const wire::GuardedProgram& program : job.programs.programs) {
    output.programs.push_back({fileText(program.stdoutPath), fileText(program.stderrPath)});
    ::unlink(program.stdoutPath.c_str());
    ::unlink(program.stderrPath.c_str());
  }
  return tell(output);
}

Status Agent::tellHolder(const wire::TellHolder& message) {
  const auto found = faults_.find(message.fault);
  const Status told = found == faults_.end()
                          ? startHolder(message)
                          : found->second.messages().send(wire::toJson(message.message));
  if (told.ok()) return told;
  return tell(wire::HolderSaid{message.fault, wire::Gone{told.message()}});
}

/// In the first process namespace, where it sees all programs.
Status Agent::startHolder(const wire::TellHolder& message) {
  launch::SpawnOptions options;
  options.body = faultHolderMain;
  options.first_message = wire::toJson(message.message);
  ASSIGN_OR_RETURN(launch::Process holder, launch::Process::spawn(options));
  faults_.emplace(message.fault, std::move(holder));
  return okStatus();
}

Status Agent::relayHolder(int id, launch::Process& holder) {
  for (;;) {
    const Result<std::optional<json>> message = holder.messages().receive();
    if (message.ok() && !*message) return okStatus();
    auto said = message.ok() ? wire::fromJson<wire::FromHolder>(**message)
                             : Result<wire::FromHolder>(message.status());
    if (!said.ok()) {
      faults_.erase(id);  // which takes the fault back
      return tell(wire::HolderSaid{id, wire::Gone{said.status().message()}});
    }
    RETURN_IF_ERROR(tell(wire::HolderSaid{id, std::move(*said)}));
  }
}

/// Between the virtio port and a socket, both ways. Its threads allocate nothing, since the agent
/// forks (SpawnOptions::body).
class PortBridge {
 public:
  PortBridge(UniqueFd port, UniqueFd socket)
      : port_(std::move(port)),
        socket_(std::move(socket)),
        in_([this] { copy(port_.get(), socket_.get()); }),
        out_([this] { copy(socket_.get(), port_.get()); }) {}

 private:
  UniqueFd port_;
  UniqueFd socket_;
  std::jthread in_;
  std::jthread out_;
};

}  // namespace

int guestAgentMain() {
  // It would switch off the machine, and not a guest.
  constexpr pid_t kFirst = 1;
  if (::getpid() != kFirst) return 1;
  Result<UniqueFd> port = openPort();
  Result<std::pair<launch::MessageChannel, launch::MessageChannel>> channel =
      launch::MessageChannel::makePair();
  if (!port.ok() || !channel.ok()) {
    std::printf("faultline guest-agent: %s\n",
                (port.ok() ? channel.status() : port.status()).message().c_str());
    return 1;  // the kernel gives up with it
  }
  const PortBridge bridge(std::move(*port), channel->second.release());
  Agent agent(channel->first);
  Status status = agent.setUp();
  if (status.ok()) status = agent.serve();
  const wire::FromGuest error(wire::GuestError{status.message()});
  (void)channel->first.send(wire::toJson(error));
  std::printf("faultline guest-agent: %s\n", status.message().c_str());
  std::fflush(stdout);
  constexpr int kLastWordsMs = 1000;  // they go through the bridge
  ::poll(nullptr, 0, kLastWordsMs);
  ::reboot(RB_POWER_OFF);
  ::_exit(1);  // the bridge waits in the kernel, and would not be joined
}

}  // namespace faultline::rdma_vm
