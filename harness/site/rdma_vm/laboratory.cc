#include "harness/site/rdma_vm/laboratory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "base/limits.h"
#include "base/units.h"
#include "harness/site/rdma_vm/machine_room.h"
#include "harness/site/rdma_vm/qemu_command.h"

namespace faultline::rdma_vm {

using nlohmann::json;

namespace {

constexpr Duration kPollInterval = 20ms;
constexpr Duration kQmpBudget = 30s;
constexpr Duration kRailStateBudget = 30s;
// From SIGTERM to SIGKILL of a program whose limit is over, and for what it printed to come back.
constexpr Duration kGrace = 2s;
constexpr Duration kOutputBudget = 60s;
// The same when nobody waits any more.
constexpr Duration kLastGrace = 500ms;
constexpr Duration kLastOutputBudget = 3s;
constexpr std::int64_t kMostOutput = 4 << 20;  // of each file, through the virtio port
constexpr std::size_t kConsoleSize = 1 << 20;
constexpr std::size_t kConsoleTail = 2000;
constexpr const char* kGuestOutputFolder = "/run";

struct Pair {
  UniqueFd near, far;
};

Result<Pair> streamPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return callRefused(errno, "socketpair", "make a channel to a guest");
  }
  return Pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// What a guest prints: memory that cannot grow, so that a kernel in trouble fills nothing.
Result<UniqueFd> makeConsole() {
  UniqueFd fd(::memfd_create("faultline-console", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), kConsoleSize) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0) {
    return Status::fromErrno(errno, "make a guest's console");
  }
  return fd;
}

}  // namespace

Result<Laboratory::Files> Laboratory::findFiles() {
  RETURN_IF_ERROR(laboratoryPossible());
  Files files;
  std::error_code error;
  files.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return errorf(Code::kIo, "find the program that runs: {}", error.message());
  for (const std::string_view own : {"/dev/", "/proc/", "/run/", "/sys/"}) {
    if (!files.program.starts_with(own)) continue;
    return errorf(Code::kUnsupported,
                  "guests have a {} of their own and do not see {}, which runs in them too: put it "
                  "elsewhere",
                  own, files.program);
  }
  ASSIGN_OR_RETURN(files.qemu, findQemu());
  ASSIGN_OR_RETURN(files.kernel, findKernel(kernelFolder()));
  return files;
}

Result<std::unique_ptr<Laboratory>> Laboratory::boot(const VmSpec& spec, const Files& files,
                                                     const GiveUp& giveUp) {
  RETURN_IF_ERROR(spec.check());
  ASSIGN_OR_RETURN(SwitchPorts ports, SwitchPorts::create(spec.hosts, spec.nics()));
  std::string shared;
  if (!spec.sharedFolder.empty()) {
    // A link on the way to it may lead where a guest has nothing yet.
    std::error_code error;
    shared = std::filesystem::canonical(spec.sharedFolder, error).string();
    if (error) {
      return errorf(Code::kIo, "find the folder to share, {}: {}", spec.sharedFolder,
                    error.message());
    }
  }
  ASSIGN_OR_RETURN(const UniqueFd initramfs, makeInitramfs(files.kernel, files.program, shared));
  wire::RoomJob job{.nics = spec.nics(), .executable = files.qemu};
  launch::SpawnOptions options;
  options.executable = files.program;
  options.arguments = {"faultline", "machine-room"};
  options.own_process_namespace = true;
  std::vector<Host> hosts;
  std::vector<UniqueFd> far_ends;
  for (int host = 0; host < spec.hosts; ++host) {
    ASSIGN_OR_RETURN(Pair agent, streamPair());
    ASSIGN_OR_RETURN(Pair qmp, streamPair());
    ASSIGN_OR_RETURN(UniqueFd console, makeConsole());
    for (const int fd : {agent.far.get(), qmp.far.get(), console.get()}) {
      options.inherited_fds.push_back(fd);
    }
    far_ends.push_back(std::move(agent.far));
    far_ends.push_back(std::move(qmp.far));
    hosts.push_back({launch::MessageChannel(std::move(agent.near)), QmpClient(std::move(qmp.near)),
                     std::move(console)});
    job.guests.push_back(qemuCommand(spec, host, files.kernel.image, guestFds(spec.nics())));
  }
  options.inherited_fds.push_back(initramfs.get());
  options.inherited_fds.push_back(ports.fd());
  options.first_message = wire::toJson(wire::ToRoom(job));
  ASSIGN_OR_RETURN(launch::Process room, launch::Process::spawn(options));
  std::unique_ptr<Laboratory> laboratory(new Laboratory(spec, std::move(ports), std::move(room)));
  laboratory->hosts_ = std::move(hosts);
  laboratory->agents_.giveUpWhen(giveUp);
  far_ends.clear();  // whoever waits for a guest must see its end
  RETURN_IF_ERROR(laboratory->awaitReady().withContext("boot the soft-RoCE laboratory"));
  return laboratory;
}

Laboratory::~Laboratory() = default;

Status Laboratory::awaitReady() {
  const TimePoint deadline = now() + spec_.bootBudget;
  for (int host = 0; host < spec_.hosts; ++host) {
    const wire::ToGuest setup(
        wire::GuestSetup{.host = host, .nics = spec_.nics(), .mtu = spec_.mtu});
    const Status sent = hosts_[static_cast<std::size_t>(host)].booting.send(wire::toJson(setup));
    if (!sent.ok()) return lostHost(host, "cannot be told anything: " + sent.message());
  }
  for (;;) {
    RETURN_IF_ERROR(poll(kPollInterval));
    int waiting = -1;
    for (int host = spec_.hosts - 1; host >= 0; --host) {
      if (!agents_.has(host)) RETURN_IF_ERROR(lookAtBootingHost(host));
      if (!agents_.isReady(host)) waiting = host;
    }
    if (waiting < 0) break;
    RETURN_IF_ERROR(unlessGivenUp(waiting, "it was booting"));
    if (now() < deadline) continue;
    return brokenHost(waiting, "is not ready after " + formatDuration(spec_.bootBudget));
  }
  for (Host& host : hosts_) RETURN_IF_ERROR(host.qmp.begin(kQmpBudget, agents_.giveUp()));
  return okStatus();
}

Status Laboratory::lookAtBootingHost(int index) {
  Host& host = hosts_[static_cast<std::size_t>(index)];
  const Result<std::optional<json>> message = host.booting.receive();
  if (!message.ok()) {
    return lostHost(index, "is not heard any more: " + message.status().message());
  }
  if (!*message) return okStatus();
  const auto said = wire::fromJson<wire::FromGuest>(**message);
  if (!said.ok()) return said.status().withContext(fmt::format("listen to host {}", index));
  if (const auto* const error = std::get_if<wire::GuestError>(&*said)) {
    return brokenHost(index, "cannot do its work: " + error->message);
  }
  guestKernel_ = std::get<wire::GuestReady>(*said).kernel;
  return agents_.add(index, std::move(host.booting), site::ClockOffset{}, wire::AgentSetup{});
}

std::string Laboratory::consoleTail(int host) const {
  const int fd = hosts_[static_cast<std::size_t>(host)].console.get();
  // Its position is shared with qemu, who wrote there.
  const auto end = static_cast<std::size_t>(std::max<off_t>(0, ::lseek(fd, 0, SEEK_CUR)));
  std::string text(std::min(end, kConsoleTail), '\0');
  const ssize_t size = ::pread(fd, text.data(), text.size(), static_cast<off_t>(end - text.size()));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  std::erase(text, '\r');
  return text;
}

Status Laboratory::brokenHost(int host, const std::string& what) const {
  const std::string console = consoleTail(host);
  return errorf(Code::kUnavailable, "host {} {}; the end of its console:\n{}", host, what,
                console.empty() ? "(nothing)" : console);
}

Status Laboratory::unlessGivenUp(int host, std::string_view what) const {
  return faultline::unlessGivenUp(agents_.giveUp(), fmt::format("host {}, when {}", host, what));
}

Status Laboratory::checkHost(int host) const {
  if (host >= 0 && host < spec_.hosts) return okStatus();
  return errorf(Code::kInvalidArgument, "there is no host {}: the laboratory has {}, from 0", host,
                spec_.hosts);
}

Status Laboratory::poll(Duration timeout) {
  RETURN_IF_ERROR(agents_.listen(timeout));
  lookAtJobs();
  return enforceLimits();
}

Status Laboratory::lookAtRoom() {
  for (;;) {
    const Result<std::optional<json>> message = room_.messages().receive();
    if (!message.ok()) return message.status().withContext("the machine room is gone");
    if (!*message) return okStatus();
    const auto said = wire::fromJson<wire::FromRoom>(**message);
    if (!said.ok()) return said.status().withContext("listen to the machine room");
    if (const auto* const gone = std::get_if<wire::GuestGone>(&*said)) {
      RETURN_IF_ERROR(checkHost(gone->host));
      return brokenHost(gone->host, "has ended: " + gone->message);
    }
    if (const auto* const error = std::get_if<wire::RoomError>(&*said)) {
      return errorf(Code::kIo, "the machine room: {}", error->message);
    }
  }
}

Status Laboratory::lostHost(int host, const std::string& what) {
  constexpr int kLaterMs = 500;
  pollfd room{room_.messages().fd(), POLLIN, 0};
  ::poll(&room, 1, kLaterMs);
  RETURN_IF_ERROR(lookAtRoom());
  return brokenHost(host, what);
}

void Laboratory::lookAtJobs() {
  for (auto& [id, job] : jobs_) {
    if (const auto started = agents_.started(id); started && !started->ok() && !job.refused) {
      job.refused = true;
      job.problem = started->message();
    }
    while (const auto said = agents_.guardSaid(id)) guardMessage(job, *said);
    const auto printed = agents_.output(id);
    if (!printed || job.output) continue;
    const wire::Printed first = printed->empty() ? wire::Printed{} : printed->front();
    const launch::ExitStatus withItsGuard{.signal = SIGKILL};
    job.output =
        RunOutput{job.exit.value_or(withItsGuard), job.timedOut, first.out, first.err, job.problem};
  }
}

void Laboratory::guardMessage(Job& job, const wire::FromGuard& message) {
  if (std::holds_alternative<wire::GuardStarted>(message)) {
    job.begun = true;
  } else if (const auto* const ended = std::get_if<wire::GuardedEnded>(&message)) {
    job.exit = launch::ExitStatus{ended->code, ended->signal};
  } else if (const auto* const gone = std::get_if<wire::Gone>(&message)) {
    job.problem = gone->message;
  } else if (const auto* const error = std::get_if<wire::GuardError>(&message)) {
    job.problem = error->outcome.message;
  }
}

Status Laboratory::enforceLimits() {
  const TimePoint time = now();
  for (auto& [id, job] : jobs_) {
    if (job.over()) continue;
    if (!job.endingSince && time > job.deadline) {
      job.timedOut = true;
      RETURN_IF_ERROR(end(id));
    } else if (job.endingSince && time > *job.endingSince + kGrace + kOutputBudget) {
      return brokenHost(job.host, "does not end a program whose time is over");
    }
  }
  return okStatus();
}

Status Laboratory::endWhatIsGivenUp() {
  if (!agents_.giveUp() || !agents_.giveUp()()) return okStatus();
  if (!givenUp_) {
    givenUp_ = now();
    for (const auto& [id, job] : jobs_) {
      if (!job.over()) RETURN_IF_ERROR(agents_.tellGuard(id, wire::EndPrograms{kLastGrace}));
    }
  }
  if (now() < *givenUp_ + kLastOutputBudget) return okStatus();
  return errorf(Code::kAborted, "the hosts do not say what was printed until the interrupt");
}

Result<int> Laboratory::start(int host, const RunRequest& request) {
  if (request.arguments.empty()) {
    return errorf(Code::kInvalidArgument, "run on host {}: no program is named", host);
  }
  RETURN_IF_ERROR(checkHost(host));
  wire::GuardedProgram program;
  ASSIGN_OR_RETURN(program.executable,
                   findOnPath(request.arguments.front(), request.workingDirectory));
  program.arguments = request.arguments;
  program.environment = request.environment;
  program.workingDirectory = request.workingDirectory.empty() ? "/" : request.workingDirectory;
  program.stdoutPath = fmt::format("{}/faultline-{}.out", kGuestOutputFolder, nextOutput_);
  program.stderrPath = fmt::format("{}/faultline-{}.err", kGuestOutputFolder, nextOutput_++);
  wire::GuardJob job;
  job.outputLimit = kMostOutput;
  job.programs.push_back(std::move(program));
  ASSIGN_OR_RETURN(const int id, agents_.startGuard(host, job, /*read=*/true));
  jobs_[id] = Job{.host = host, .deadline = now() + request.limit};
  return id;
}

Result<int> Laboratory::startFault(int host, const wire::HeldFault& fault) {
  RETURN_IF_ERROR(checkHost(host));
  return agents_.startFault(host, fault);
}

bool Laboratory::hasEnded(int job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() || found->second.exit.has_value() || found->second.over();
}

Status Laboratory::end(int job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return errorf(Code::kNotFound, "there is no job {}", job);
  found->second.endingSince = now();
  return agents_.tellGuard(job, wire::EndPrograms{kGrace});
}

Result<RunOutput> Laboratory::finish(int job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return errorf(Code::kNotFound, "there is no job {}", job);
  while (!found->second.over()) {
    RETURN_IF_ERROR(poll(kPollInterval));
    RETURN_IF_ERROR(endWhatIsGivenUp());
  }
  const Job ended = std::move(found->second);
  jobs_.erase(found);
  agents_.forget(job);
  if (ended.output && (ended.begun || ended.problem.empty())) return *ended.output;
  return errorf(Code::kIo, "a program on host {} could not be run: {}", ended.host, ended.problem);
}

Result<RunOutput> Laboratory::run(int host, const RunRequest& request) {
  ASSIGN_OR_RETURN(const int job, start(host, request));
  return finish(job);
}

Result<std::vector<RunOutput>> Laboratory::runAll(const std::vector<HostRequest>& requests) {
  std::vector<int> jobs;
  for (const auto& [host, request] : requests) {
    ASSIGN_OR_RETURN(const int job, start(host, request));
    jobs.push_back(job);
  }
  std::vector<RunOutput> outputs;
  for (const int job : jobs) {
    ASSIGN_OR_RETURN(outputs.emplace_back(), finish(job));
  }
  return outputs;
}

Status Laboratory::setCable(int host, int rail, bool plugged) {
  RETURN_IF_ERROR(checkHost(host));
  return hosts_[static_cast<std::size_t>(host)].qmp.setLink(qemuNicName(rail + 1), plugged,
                                                            kQmpBudget, agents_.giveUp());
}

void Laboratory::setBlocked(int host, int rail, bool blocked) {
  ports_.at(host, rail + 1).blocked.store(blocked ? 1 : 0);
}

Status Laboratory::askForRails(int host) {
  RETURN_IF_ERROR(checkHost(host));
  return agents_.askForRails(host);
}

Result<std::vector<wire::RailState>> Laboratory::railStates(int host) {
  RETURN_IF_ERROR(askForRails(host));
  const TimePoint deadline = now() + kRailStateBudget;
  for (;;) {
    if (auto rails = toldRails(host)) return *std::move(rails);
    RETURN_IF_ERROR(poll(kPollInterval));
    RETURN_IF_ERROR(unlessGivenUp(host, "it was to tell of its rails"));
    if (now() > deadline) return brokenHost(host, "does not tell of its rails");
  }
}

}  // namespace faultline::rdma_vm
