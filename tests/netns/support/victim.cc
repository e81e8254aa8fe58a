/// What a run is made of, without a job: a cluster, one process per node with bulk TCP traffic on
/// every rail, and ports that go down and come back. Runs until it is killed.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "harness/launch/lifeline.h"
#include "harness/launch/privileges.h"
#include "harness/launch/process.h"
#include "harness/site/netns/cluster.h"
#include "injector/faults/registry.h"

namespace faultline {
namespace {

constexpr int kNodes = 3;
constexpr int kRails = 2;
constexpr std::uint16_t kPort = 4711;
constexpr BitsPerSecond kRailRate = 100'000'000;
constexpr std::size_t kBlock = 64 * 1024;

[[noreturn]] void die(const Status& status) {
  std::fprintf(stderr, "victim: %s\n", status.message().c_str());
  std::exit(1);
}

void resetOnClose(int fd) {
  const linger reset{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
}

sockaddr_in railSocketAddress(int node, int rail) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  ::inet_pton(AF_INET, netns::railAddress(node, rail).c_str(), &address.sin_addr);
  return address;
}

UniqueFd railSocket(int rail) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  resetOnClose(fd.get());
  const std::string device = netns::railName(rail);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, device.data(),
               static_cast<socklen_t>(device.size()));
  return fd;
}

UniqueFd listenRail(int node, int rail) {
  UniqueFd fd = railSocket(rail);
  const sockaddr_in address = railSocketAddress(node, rail);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), kNodes) != 0) {
    die(Status::fromErrno(errno, "listen on a rail"));
  }
  return fd;
}

UniqueFd connectRail(int peer, int rail) {
  UniqueFd fd = railSocket(rail);
  const sockaddr_in address = railSocketAddress(peer, rail);
  ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return fd;
}

/// A rank: floods its right neighbour over every rail and swallows what comes from the left.
int rank(int node) {
  const launch::Lifeline lifeline{UniqueFd(launch::kLifelineFd)};
  launch::MessageChannel messages{UniqueFd(launch::kMessagesFd)};
  std::vector<UniqueFd> sockets;
  std::vector<pollfd> polled;
  for (int rail = 0; rail < kRails; ++rail) {
    sockets.push_back(listenRail(node, rail));
    polled.push_back({sockets.back().get(), POLLIN, 0});
  }
  if (!messages.send({{"listening", node}}).ok()) return 1;
  if (!messages.receiveWithin(30s).ok()) return 1;
  for (int rail = 0; rail < kRails; ++rail) {
    sockets.push_back(connectRail((node + 1) % kNodes, rail));
    polled.push_back({sockets.back().get(), POLLOUT, 0});
  }
  std::vector<char> block(kBlock);
  while (true) {
    ::poll(polled.data(), polled.size(), -1);
    for (std::size_t index = 0; index < polled.size(); ++index) {
      const pollfd ready = polled[index];
      if (ready.revents == 0) continue;
      if (index < kRails) {
        UniqueFd accepted(::accept4(ready.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        resetOnClose(accepted.get());
        polled.push_back({accepted.get(), POLLIN, 0});
        sockets.push_back(std::move(accepted));
      } else {
        const ssize_t size = (ready.events & POLLIN) != 0
                                 ? ::recv(ready.fd, block.data(), block.size(), 0)
                                 : ::send(ready.fd, block.data(), block.size(), MSG_NOSIGNAL);
        if (size == 0 || (size < 0 && errno != EAGAIN)) polled[index].fd = -1;  // poll() skips it
      }
    }
  }
}

int controller() {
  if (const auto privileges = launch::enterPrivileges(); !privileges.ok()) {
    die(privileges.status());
  }
  auto made = netns::Cluster::create({.nodes = kNodes, .rails = kRails, .rail_rate = kRailRate});
  if (!made.ok()) die(made.status());
  const auto& cluster = *made;
  std::vector<launch::Process> ranks;
  for (int node = 0; node < kNodes; ++node) {
    launch::SpawnOptions spawn;
    spawn.arguments = {"victim", "rank", std::to_string(node)};
    spawn.namespace_fd = cluster->nodeNamespace(node);
    auto process = launch::Process::spawn(spawn);
    if (!process.ok()) die(process.status());
    ranks.push_back(*std::move(process));
  }
  for (launch::Process& process : ranks) {
    if (auto ready = process.messages().receiveWithin(30s); !ready.ok()) die(ready.status());
  }
  for (launch::Process& process : ranks) {
    if (const Status status = process.messages().send({{"go", true}}); !status.ok()) die(status);
  }
  std::puts("traffic");
  std::fflush(stdout);
  // Sometimes the port is down when the end comes, sometimes not.
  const auto parameters = injector::FaultParameters::parse(*injector::findFaultKind("port_flap"),
                                                           {{"period", "400ms"}, {"duty", "70%"}});
  auto fault = injector::makeFault("port_flap", *parameters, cluster->railTarget(1, 0));
  if (const Status status = (*fault)->prepare(); !status.ok()) die(status);
  if (const Status status = (*fault)->apply(); !status.ok()) die(status);
  while (true) {
    if (const Status status = (*fault)->step(now()); !status.ok()) die(status);
    ::poll(nullptr, 0, 1);
  }
}

}  // namespace
}  // namespace faultline

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "rank") return faultline::rank(std::atoi(argv[2]));
  return faultline::controller();
}
