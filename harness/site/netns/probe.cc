#include "harness/site/netns/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/pkt_cls.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "base/unique_fd.h"
#include "harness/launch/privileges.h"
#include "harness/site/netns/kind.h"
#include "harness/site/netns/sysctl.h"
#include "injector/faults/registry.h"
#include "injector/netlink/address.h"
#include "injector/netlink/counters.h"
#include "injector/netlink/drop_filter.h"
#include "injector/netlink/frame_socket.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/packet_program.h"
#include "injector/netlink/shaper.h"
#include "injector/netlink/tcp_connections.h"

namespace faultline::netns {
namespace {

using injector::faultsThatNeed;
using injector::KernelMechanism;

constexpr int kNearIndex = 100;
constexpr int kFarIndex = 200;
constexpr int kBridgeIndex = 300;
constexpr BitsPerSecond kTrialRate = 100'000'000;

// Fields and lines of the child's answer; no message contains them.
constexpr char kField = '\x1f';
constexpr char kLine = '\x1e';

/// A trial after another, each on what the ones before it have made.
class Trials {
 public:
  using Step = std::function<Status()>;

  bool attempt(const char* name, const std::string& cost, const Step& step) {
    const Status status =
        blocked_.empty() ? step() : errorf(Code::kUnsupported, "not tried: needs {}", blocked_);
    found_.push_back({name, status.ok(), status.message(), status.ok() ? "" : cost});
    return status.ok();
  }
  /// As attempt(), for what everything after it needs.
  void need(const char* name, const std::string& cost, const Step& step) {
    if (!attempt(name, cost, step) && blocked_.empty()) blocked_ = name;
  }
  const std::vector<Capability>& found() const { return found_; }

 private:
  std::vector<Capability> found_;
  std::string blocked_;
};

Status writable(int namespace_fd) { return writeSysctls(namespace_fd, clusterSysctls()); }

std::vector<Capability> tryEverything() {
  const std::string all = fmt::format("clusters of kind {}", kKind.name);
  Trials trials;
  UniqueFd near_fd;
  UniqueFd far_fd;
  std::optional<netlink::Socket> near;
  const auto open = [&]() -> Status {
    ASSIGN_OR_RETURN(near_fd, netlink::newNamespace());
    ASSIGN_OR_RETURN(far_fd, netlink::newNamespace());
    ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::open(near_fd.get()));
    near.emplace(std::move(socket));
    return okStatus();
  };
  trials.need("privileges", all, [] { return launch::enterPrivileges().status(); });
  trials.need("network namespace", all, open);
  trials.attempt("network settings", all, [&] { return writable(near_fd.get()); });
  trials.need("veth", all, [&] {
    return netlink::createVeth(*near, {"near", kNearIndex}, far_fd.get(), {"far", kFarIndex});
  });
  trials.need("port up and down", all, [&]() -> Status {
    RETURN_IF_ERROR(netlink::setUp(*near, kNearIndex, true));
    RETURN_IF_ERROR(netlink::setUp(*near, kNearIndex, false));
    return netlink::setUp(*near, kNearIndex, true);
  });
  trials.attempt("interface counters", "faults triggered by progress; rail bytes in the report",
                 [&] { return netlink::readCounters(*near, kNearIndex).status(); });
  trials.attempt("packet socket", "evidence by probes when the job itself gives no load",
                 [&] { return netlink::FrameSocket::open(*near, kNearIndex, 0).status(); });
  trials.attempt("htb and u32", "rail_rate, and " + faultsThatNeed(KernelMechanism::kShaper),
                 [&]() -> Status {
                   RETURN_IF_ERROR(netlink::installShaper(*near, kNearIndex, kTrialRate));
                   return netlink::setShaperRate(*near, kNearIndex, kTrialRate / 2);
                 });
  trials.attempt("clsact and cls_bpf", faultsThatNeed(KernelMechanism::kDropFilter),
                 [&]() -> Status {
                   constexpr netlink::DropRule kAll;
                   RETURN_IF_ERROR(netlink::addDropRules(*near, kNearIndex, std::span(&kAll, 1)));
                   return netlink::removeDropRules(*near, kNearIndex);
                 });
  trials.attempt(
      "eBPF programs for packets", faultsThatNeed(KernelMechanism::kPacketProgram),
      [&]() -> Status {
        const netlink::PacketProgram none{.code =
                                              netlink::PacketCode().leave(TC_ACT_UNSPEC).finish()};
        RETURN_IF_ERROR(netlink::addPacketPrograms(*near, kNearIndex, std::span(&none, 1)));
        return netlink::removePacketPrograms(*near, kNearIndex);
      });
  trials.attempt("SOCK_DESTROY", faultsThatNeed(KernelMechanism::kSocketDestroy), [&]() -> Status {
    ASSIGN_OR_RETURN(auto connections, netlink::TcpConnections::open(near_fd.get()));
    return connections.requireDestroy();
  });
  trials.need("bridge", all, [&]() -> Status {
    RETURN_IF_ERROR(netlink::createBridge(*near, "bridge", kBridgeIndex));
    RETURN_IF_ERROR(netlink::setUp(*near, kBridgeIndex, true));
    return netlink::enslave(*near, kNearIndex, kBridgeIndex);
  });
  trials.attempt(
      "bridge port state", faultsThatNeed(KernelMechanism::kBridgePortState), [&]() -> Status {
        ASSIGN_OR_RETURN(netlink::Socket far, netlink::Socket::open(far_fd.get()));
        RETURN_IF_ERROR(netlink::setUp(far, kFarIndex, true));
        return netlink::setBridgePortState(*near, kNearIndex, netlink::BridgePortState::kDisabled);
      });
  return trials.found();
}

std::string encode(const std::vector<Capability>& capabilities) {
  std::string text;
  for (const Capability& capability : capabilities) {
    text += capability.name + kField + (capability.ok ? "1" : "0") + kField + capability.details +
            kField + capability.cost + kLine;
  }
  return text;
}

std::vector<Capability> decode(std::string_view text) {
  std::vector<Capability> capabilities;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find(kLine));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::array<std::string, 4> fields;
    for (std::string& field : fields) {
      field = line.substr(0, line.find(kField));
      line.remove_prefix(std::min(line.size(), field.size() + 1));
    }
    capabilities.push_back({fields[0], fields[1] == "1", fields[2], fields[3]});
  }
  return capabilities;
}

std::string readAll(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

void writeAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

}  // namespace

Result<std::vector<Capability>> probe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return callRefused(errno, "pipe2", "probe this machine");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return callRefused(errno, "pipe2", "probe this machine");
  if (child == 0) {
    writeAll(write_end.get(), encode(tryEverything()));
    ::_exit(0);
  }
  write_end.reset();
  const std::string answer = readAll(read_end.get());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || answer.empty()) {
    return errorf(Code::kInternal, "probe this machine: the trial ended with status {:#x}", status);
  }
  return decode(answer);
}

}  // namespace faultline::netns
