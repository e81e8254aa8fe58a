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
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "harness/agent/agent.h"
#include "harness/launch/process.h"
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

/// Makes the guest what it is told to be. The number of its rails.
Result<int> setUp(launch::MessageChannel& controller) {
  ASSIGN_OR_RETURN(const json message, controller.receiveWithin(kSetupBudget));
  ASSIGN_OR_RETURN(const auto setup,
                   (wire::firstFromJson<wire::ToGuest, wire::GuestSetup>(message)));
  RETURN_IF_ERROR(setUpGuest(setup));
  utsname kernel{};
  ::uname(&kernel);
  const wire::FromGuest ready(wire::GuestReady{kernel.release});
  RETURN_IF_ERROR(controller.send(wire::toJson(ready)));
  return setup.nics - 1;  // and management
}

Status serveGuest(launch::MessageChannel& controller) {
  const Result<int> rails = setUp(controller);
  if (rails.ok()) return agent::serve(controller, [&] { return readRailStates(*rails); });
  const wire::FromGuest error(wire::GuestError{rails.status().message()});
  (void)controller.send(wire::toJson(error));
  return rails.status();
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
  const Status status = serveGuest(channel->first);
  std::printf("faultline guest-agent: %s\n", status.message().c_str());
  std::fflush(stdout);
  constexpr int kLastWordsMs = 1000;  // they go through the bridge
  ::poll(nullptr, 0, kLastWordsMs);
  ::reboot(RB_POWER_OFF);
  ::_exit(1);  // the bridge waits in the kernel, and would not be joined
}

}  // namespace faultline::rdma_vm
