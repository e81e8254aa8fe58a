#include "harness/site/rdma_vm/machine_room.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "harness/launch/lifeline.h"
#include "harness/launch/message_channel.h"
#include "harness/site/rdma_vm/frame_switch.h"
#include "wire/guest.h"

namespace faultline::rdma_vm {

using nlohmann::json;

namespace {

constexpr Duration kJobBudget = 10s;
constexpr std::size_t kLargestFrame = 64 * 1024;
// That one host sends before the others are looked at again.
constexpr int kFramesInARow = 32;
// Of frames that a guest does not take. A queue pair of rxe has 64 packets on their way.
constexpr std::size_t kLongestQueue = 2048;

class MachineRoom {
 public:
  MachineRoom(launch::MessageChannel& controller, SwitchPorts ports)
      : controller_(controller), ports_(std::move(ports)) {}

  Status start(const wire::RoomJob& job);
  /// Until the controller dies, or something fails.
  Status serve();

 private:
  using Frame = std::vector<std::uint8_t>;
  struct Port {
    int host = 0;
    int nic = 0;
    UniqueFd socket;
    std::deque<Frame> queue;
  };
  struct Guest {
    launch::Process process;
    bool ended = false;
  };

  Port& portOf(int host, int nic) {
    return wires_[static_cast<std::size_t>(host * ports_.nics() + nic)];
  }
  Status startGuest(const wire::RoomJob& job, int host);
  void receive(Port& port);
  void send(Port& port, std::span<const std::uint8_t> frame);
  void flush(Port& port);
  Status lookForEnds();
  Status tell(const wire::FromRoom& message) { return controller_.send(wire::toJson(message)); }

  launch::MessageChannel& controller_;
  SwitchPorts ports_;
  std::vector<Port> wires_;
  std::vector<Guest> guests_;
};

Status MachineRoom::startGuest(const wire::RoomJob& job, int host) {
  launch::SpawnOptions options;
  options.executable = job.executable;
  options.arguments = job.guests[static_cast<std::size_t>(host)];
  options.foreign = true;
  options.stdout_fd = RoomFds::console(host);
  options.stderr_fd = RoomFds::console(host);
  std::vector<UniqueFd> far_ends;
  for (int nic = 0; nic < job.nics; ++nic) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return callRefused(errno, "socketpair", "make a cable");
    }
    wires_.push_back({host, nic, UniqueFd(ends[0]), {}});
    far_ends.emplace_back(ends[1]);
    options.inherited_fds.push_back(ends[1]);
  }
  const int hosts = static_cast<int>(job.guests.size());
  for (const int fd : {RoomFds::agent(host), RoomFds::qmp(host), RoomFds::initramfs(hosts)}) {
    options.inherited_fds.push_back(fd);
  }
  ASSIGN_OR_RETURN(launch::Process process, launch::Process::spawn(options));
  guests_.push_back({std::move(process)});
  return okStatus();
}

Status MachineRoom::start(const wire::RoomJob& job) {
  const int hosts = static_cast<int>(job.guests.size());
  for (int host = 0; host < hosts; ++host) {
    RETURN_IF_ERROR(startGuest(job, host).withContext(fmt::format("start host {}", host)));
  }
  // They are the guests' alone: whoever waits for the other end of one waits for its guest.
  for (int host = 0; host < hosts; ++host) {
    ::close(RoomFds::agent(host));
    ::close(RoomFds::qmp(host));
    ::close(RoomFds::console(host));
  }
  ::close(RoomFds::initramfs(hosts));
  return tell(wire::RoomStarted{});
}

Status MachineRoom::serve() {
  for (;;) {
    std::vector<pollfd> ready{{launch::kLifelineFd, POLLIN, 0}};
    for (const Port& port : wires_) {
      const int events = POLLIN | (port.queue.empty() ? 0 : POLLOUT);
      ready.push_back({port.socket.get(), static_cast<short>(events), 0});
    }
    for (const Guest& guest : guests_) {
      ready.push_back({guest.ended ? -1 : guest.process.pidFd(), POLLIN, 0});
    }
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) {
      return Status::fromErrno(errno, "wait for frames");
    }
    // Nobody ever writes into the lifeline: whatever happens to it is its end, and with this
    // process the kernel ends all of its namespace.
    if (ready[0].revents != 0) ::_exit(launch::Lifeline::kExitOrphaned);
    for (std::size_t index = 0; index < wires_.size(); ++index) {
      const short events = ready[index + 1].revents;
      if ((events & POLLOUT) != 0) flush(wires_[index]);
      if ((events & POLLIN) != 0) receive(wires_[index]);
    }
    RETURN_IF_ERROR(lookForEnds());
  }
}

void MachineRoom::receive(Port& port) {
  std::array<std::uint8_t, kLargestFrame> bytes;
  for (int count = 0; count < kFramesInARow; ++count) {
    const ssize_t size = ::recv(port.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size <= 0) return;
    const std::span<const std::uint8_t> frame(bytes.data(), static_cast<std::size_t>(size));
    for (const int host : forward(ports_, port.host, port.nic, frame)) {
      send(portOf(host, port.nic), frame);
    }
  }
}

void MachineRoom::send(Port& port, std::span<const std::uint8_t> frame) {
  if (port.queue.empty() &&
      ::send(port.socket.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
    return;
  }
  if (port.queue.size() < kLongestQueue) {
    port.queue.emplace_back(frame.begin(), frame.end());
  } else {
    ports_.at(port.host, port.nic).overflow.fetch_add(1, std::memory_order_relaxed);
  }
}

void MachineRoom::flush(Port& port) {
  while (!port.queue.empty()) {
    const Frame& frame = port.queue.front();
    if (::send(port.socket.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      port.queue.clear();  // its guest has ended
      return;
    }
    port.queue.pop_front();
  }
}

Status MachineRoom::lookForEnds() {
  for (std::size_t host = 0; host < guests_.size(); ++host) {
    Guest& guest = guests_[host];
    if (guest.ended) continue;
    ASSIGN_OR_RETURN(const std::optional<launch::ExitStatus> ended, guest.process.tryWait());
    if (!ended) continue;
    guest.ended = true;
    RETURN_IF_ERROR(tell(wire::GuestGone{static_cast<int>(host), "qemu: " + ended->toString()}));
  }
  return okStatus();
}

Status serveOne(launch::MessageChannel& controller) {
  ASSIGN_OR_RETURN(const json message, controller.receiveWithin(kJobBudget));
  ASSIGN_OR_RETURN(const auto job, (wire::firstFromJson<wire::ToRoom, wire::RoomJob>(message)));
  const int hosts = static_cast<int>(job.guests.size());
  ASSIGN_OR_RETURN(SwitchPorts ports,
                   SwitchPorts::open(UniqueFd(RoomFds::ports(hosts)), hosts, job.nics));
  MachineRoom room(controller, std::move(ports));
  RETURN_IF_ERROR(room.start(job));
  return room.serve();
}

}  // namespace

QemuFds guestFds(int nics) {
  QemuFds fds;
  int next = launch::kFirstInheritedFd;
  for (int nic = 0; nic < nics; ++nic) fds.nics.push_back(next++);
  fds.agent = next++;
  fds.qmp = next++;
  fds.initramfs = next;
  return fds;
}

int machineRoomMain() {
  launch::MessageChannel controller{UniqueFd(launch::kMessagesFd)};
  const Status status = serveOne(controller);
  const wire::FromRoom error(wire::RoomError{status.message()});
  (void)controller.send(wire::toJson(error));
  return 1;
}

}  // namespace faultline::rdma_vm
