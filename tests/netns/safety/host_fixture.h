#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/launch/process.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/namespace.h"
#include "injector/netlink/socket.h"
#include "injector/safety/journal.h"
#include "injector/safety/policy_file.h"
#include "injector/safety/target.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/netns_shell.h"
#include "tests/support/poll_until.h"
#include "tests/support/run_program.h"

namespace faultline::safety {

using test::pollUntil;
using ::testing::HasSubstr;

/// A program in a namespace, with what it prints.
class Running {
 public:
  Running(const std::string& program, std::vector<std::string> words, int namespaceFd,
          const char* ssh = "") {
    out_ = UniqueFd(::memfd_create("out", MFD_CLOEXEC));
    err_ = UniqueFd(::memfd_create("err", MFD_CLOEXEC));
    launch::SpawnOptions options;
    options.executable = program;
    options.arguments = std::move(words);
    options.environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin";
    options.environment["SSH_CONNECTION"] = ssh;
    options.namespace_fd = namespaceFd;
    options.foreign = true;
    options.stdout_fd = out_.get();
    options.stderr_fd = err_.get();
    auto spawned = launch::Process::spawn(options);
    EXPECT_TRUE(spawned.ok()) << spawned.status().toString();
    process_.emplace(std::move(spawned).value());
  }
  pid_t pid() const { return process_->pid(); }
  void signal(int number) { EXPECT_TRUE(process_->signal(number).ok()); }
  /// What it has said on its standard error so far.
  std::string errors() const { return text(err_); }
  testing::Ran wait() {
    const auto ended = process_->waitFor(60s);
    EXPECT_TRUE(ended.ok()) << ended.status().toString();
    if (!ended.ok()) return {};
    return {ended->signal != 0 ? 128 + ended->signal : ended->code, text(out_), text(err_)};
  }

 private:
  static std::string text(const UniqueFd& fd) {
    std::string all;
    std::array<char, 4096> part{};
    for (ssize_t got = 0;
         (got = ::pread(fd.get(), part.data(), part.size(), static_cast<off_t>(all.size()))) > 0;) {
      all.append(part.data(), static_cast<std::size_t>(got));
    }
    return all;
  }
  UniqueFd out_;
  UniqueFd err_;
  std::optional<launch::Process> process_;
};

/// A host of its own: eth0 has the default route, eth1 and eth2 are of a network for data, with all
/// that an interface loses when it goes down.
class HostTest : public test::NetnsTest {
 protected:
  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    if (!trustedPath("/usr").ok()) GTEST_SKIP() << "a policy must be root's, also outside of here";
    ASSERT_OK_AND_ASSIGN(host_, netlink::newNamespace());
    ASSERT_OK_AND_ASSIGN(peer_, netlink::newNamespace());
    ASSERT_OK_AND_ASSIGN(netlink::Socket socket, netlink::Socket::open(host_.get()));
    socket_.emplace(std::move(socket));
    // Nobody else has these addresses, and the kernel takes a second or two to ask.
    for (const int fd : {host_.get(), peer_.get()}) {
      test::runInNamespace(fd, "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad");
    }
    for (const int number : {0, 1, 2}) {
      ASSERT_OK(netlink::createVeth(
          *socket_, {.name = fmt::format("eth{}", number), .ifindex = 10 + number}, peer_.get(),
          {.name = fmt::format("far{}", number), .ifindex = 20 + number}));
    }
    test::runInNamespace(
        peer_.get(),
        "ip link set lo up\n"
        "for i in 0 1 2; do ip addr add 10.9.$i.2/24 dev far$i; "
        "ip -6 addr add fd00:9:$i::2/64 dev far$i nodad; ip link set far$i up; done");
    test::runInNamespace(
        host_.get(),
        "ip link set lo up\n"
        "for i in 0 1 2; do ip addr add 10.9.$i.1/24 dev eth$i; "
        "ip -6 addr add fd00:9:$i::1/64 dev eth$i nodad; ip link set eth$i up; done\n"
        "ip route add default via 10.9.0.2 dev eth0\n"
        "ip addr add 10.9.1.9/24 dev eth1\n"
        "ip route add 10.77.0.0/16 via 10.9.1.2 dev eth1 metric 7\n"
        "ip route add 10.78.0.0/16 via 10.9.1.2 dev eth1 table 77\n"
        "ip -6 route add fd00:77::/64 via fd00:9:1::2 dev eth1\n"
        "ip rule add from 10.9.1.9 table 77\n");
    // As somebody has heard of them: the kernel forgets that when the port goes down.
    ASSERT_OK_AND_ASSIGN(netlink::Socket far, netlink::Socket::open(peer_.get()));
    for (const int number : {1, 2}) {
      ASSERT_OK_AND_ASSIGN(const auto link, netlink::readNetDevice(far, 20 + number));
      test::runInNamespace(
          host_.get(),
          fmt::format("ip neigh replace 10.9.{0}.2 lladdr {1:02x} dev eth{0} nud reachable", number,
                      fmt::join(link.mac, ":")));
    }
    journal_ = (folder_.path() / "journal").string();
    policy_ = folder_.write(
        "policy.yaml",
        "version: 1\nmay_strike: [eth0, eth1, eth2]\n"
        "kinds: [port_down, throttle, blackhole, loss, one_way_loss]\nlongest: 60s\n" +
            more_);
    ASSERT_TRUE(pollUntil(5s, [&] { return isUp("eth1") && isUp("eth2"); }));
    // Until the kernel has made up its mind about addresses of its own.
    std::string last;
    EXPECT_TRUE(pollUntil(5s, [&] {
      const std::string now = state();
      const bool still = now == last && now.find("tentative") == std::string::npos;
      last = now;
      if (!still) ::usleep(100'000);
      return still;
    }));
  }

  std::vector<std::string> words(std::vector<std::string> verb, bool policy = true) const {
    verb.insert(verb.begin(), "faultline");
    verb.insert(verb.end(), {"--journal", journal_});
    if (policy) verb.insert(verb.end(), {"--policy", policy_});
    return verb;
  }
  Running start(std::vector<std::string> verb, bool policy = true) const {
    return Running(std::string(FAULTLINE_BINARY_DIR) + "/faultline", words(std::move(verb), policy),
                   host_.get());
  }
  testing::Ran run(std::vector<std::string> verb) const { return start(std::move(verb)).wait(); }
  testing::Ran strike(std::vector<std::string> more = {}) const {
    std::vector<std::string> verb{"inject", "port_down", "--target", "eth1", "--for", "200ms"};
    verb.insert(verb.end(), more.begin(), more.end());
    return run(std::move(verb));
  }
  testing::Ran restore(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), "restore");
    return start(std::move(more), false).wait();
  }
  testing::Ran shell(const std::string& commands) const {
    return Running("/bin/sh", {"sh", "-ec", commands}, host_.get()).wait();
  }

  bool isUp(const std::string& name) {
    const auto links = netlink::listNetDevices(*socket_);
    if (!links.ok()) return false;
    for (const netlink::NetDevice& link : *links) {
      if (link.name == name) return netlink::isOperational(link);
    }
    return false;
  }

  /// All of the network, as iproute2 tells it, without what changes by itself.
  std::string state() const {
    std::string all;
    for (const char* command : {"addr", "route show table all", "-6 route show table all", "rule",
                                "-6 rule", "neigh show nud permanent", "nexthop"}) {
      all += lines(shell(fmt::format("ip -j -d {}", command)).out);
    }
    return all + lines(shell("tc -j qdisc").out);
  }

  /// Whether it is as before: the kernel needs a while to be sure of its own IPv6 address.
  bool isAgain(const std::string& before) const {
    const bool same = pollUntil(5s, [&] { return state() == before; });
    if (!same) {
      EXPECT_EQ(state(), before);
    }
    return same;
  }

  /// The entries of the journal.
  std::vector<Entry> entries() const {
    const auto kept = Journal::look(journal_).read();
    EXPECT_TRUE(kept.ok()) << kept.status().toString();
    return kept.ok() ? kept->entries : std::vector<Entry>{};
  }
  /// The entry, once the interface is down.
  std::optional<Entry> held(const std::string& name = "eth1") {
    std::optional<Entry> entry;
    EXPECT_TRUE(pollUntil(20s, [&] {
      const auto all = entries();
      if (!all.empty() && !isUp(name)) entry = all.front();
      return entry.has_value();
    }));
    return entry;
  }

  UniqueFd host_;
  UniqueFd peer_;
  std::optional<netlink::Socket> socket_;
  testing::TemporaryFolder folder_;
  std::string journal_;
  std::string policy_;
  std::string more_;  ///< of the policy

 private:
  static void forget(nlohmann::json& json) {
    if (json.is_object()) {
      for (const char* key : {"valid_life_time", "preferred_life_time", "refcnt", "expires"}) {
        json.erase(key);
      }
    }
    if (json.is_structured()) {
      for (auto& inner : json) forget(inner);
    }
  }
  /// A line for each thing; their order says nothing.
  static std::string lines(const std::string& text) {
    nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_array()) return text;
    std::vector<std::string> sorted;
    for (auto& one : json) {
      forget(one);
      if (one.contains("addr_info")) {
        auto& list = one["addr_info"];
        std::sort(list.begin(), list.end(),
                  [](const auto& left, const auto& right) { return left.dump() < right.dump(); });
      }
      sorted.push_back(one.dump());
    }
    std::sort(sorted.begin(), sorted.end());
    std::string all;
    for (const std::string& line : sorted) all += line + "\n";
    return all;
  }
};

}  // namespace faultline::safety
