#pragma once

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <memory>
#include <sstream>

#include "tests/netns/safety/host_fixture.h"
#include "wire/service.h"

namespace faultline::safety {

/// What the process of a client is to be, from the next spawn on.
struct ClientProcess {
  sockaddr_un address{};
  uid_t uid = 0;
};
inline ClientProcess clientProcess;  // the body of a process has no arguments

inline sockaddr_un addressOf(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
  return address;
}

/// Carries bytes between the test and the service, from a process of its own: that is who asks.
inline int carryBytes() {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (clientProcess.uid != 0 && (::setgroups(0, nullptr) != 0 || ::setgid(clientProcess.uid) != 0 ||
                                 ::setuid(clientProcess.uid) != 0)) {
    return 2;
  }
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&clientProcess.address),
                sizeof clientProcess.address) != 0) {
    return 3;
  }
  char bytes[4096];
  const auto pass = [&](int from, int to) {
    const ssize_t got = ::read(from, bytes, sizeof bytes);
    return got > 0 && ::send(to, bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL) == got;
  };
  while (true) {
    pollfd ready[] = {{launch::kMessagesFd, POLLIN, 0}, {socket, POLLIN, 0}};
    ::poll(ready, 2, -1);
    if (ready[1].revents != 0 && !pass(socket, launch::kMessagesFd)) return 0;
    if (ready[0].revents == 0 || pass(launch::kMessagesFd, socket)) continue;
    ::shutdown(socket, SHUT_WR);
    while (pass(socket, launch::kMessagesFd)) {  // its last word
    }
    return 0;
  }
}

/// Who asks the service: a process in the namespace of the host.
class TestClient {
 public:
  TestClient(const std::string& socket, int namespaceFd, uid_t uid, int (*body)() = carryBytes) {
    clientProcess.address = addressOf(socket);
    clientProcess.uid = uid;
    launch::SpawnOptions options;
    options.body = body;
    options.namespace_fd = namespaceFd;
    auto spawned = launch::Process::spawn(options);
    EXPECT_TRUE(spawned.ok()) << spawned.status().toString();
    process_.emplace(*std::move(spawned));
  }

  launch::MessageChannel& channel() { return process_->messages(); }
  void signal(int number) { EXPECT_TRUE(process_->signal(number).ok()); }
  /// Its end of the connection is closed.
  void leave() { process_.reset(); }

  bool say(const wire::ToService& message) { return channel().send(wire::toJson(message)).ok(); }
  /// Gone: the connection was closed.
  wire::FromService hear(Duration budget = 30s) {
    const auto message = channel().receiveWithin(budget);
    if (!message.ok()) return wire::Gone{message.status().message()};
    auto said = wire::fromJson<wire::FromService>(*message);
    EXPECT_TRUE(said.ok()) << said.status().message();
    return said.ok() ? *std::move(said) : wire::Gone{"no message"};
  }
  /// The answer to a call.
  wire::HolderAnswer call(wire::FaultCall which) {
    EXPECT_TRUE(say(wire::CallFault{which}));
    const auto said = hear();
    const auto* const answer = std::get_if<wire::HolderAnswer>(&said);
    EXPECT_NE(answer, nullptr) << wire::toJson(said);
    return answer == nullptr ? wire::HolderAnswer{} : *answer;
  }
  /// Why the service drops it; waits for that. Skips answers.
  std::string whyDropped() {
    std::string why = "without a word";
    while (true) {
      const auto said = hear();
      if (const auto* broken = std::get_if<wire::HolderBroken>(&said)) {
        why = broken->outcome.message;
      } else if (std::holds_alternative<wire::Gone>(said)) {
        return why;
      }
    }
  }

 private:
  std::optional<launch::Process> process_;
};

/// A host with a fault service.
class ServiceTest : public HostTest {
 protected:
  void SetUp() override {
    HostTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ::chmod(folder_.path().c_str(), 0755);  // others come to the socket
    socket_path_ = (folder_.path() / "faultd.sock").string();
    startService();
  }
  void TearDown() override {
    if (!service_) return;
    service_->signal(SIGTERM);
    const testing::Ran ran = service_->wait();
    if (HasFailure()) fmt::print(stderr, "the service's log:\n{}", ran.err);
    service_.reset();
  }

  virtual std::vector<std::string> serviceCommand() const {
    return {std::string(FAULTLINE_BINARY_DIR) + "/faultline",
            "faultd",
            "--socket",
            socket_path_,
            "--policy",
            policy_,
            "--journal",
            journal_};
  }
  void startService() {
    const auto command = serviceCommand();
    service_.emplace(Running(command.front(), command, host_.get()));
    ASSERT_TRUE(pollUntil(20s, [&] { return serves(); }));
  }
  /// Ends it, and returns its log.
  testing::Ran endService(int number = SIGTERM) {
    service_->signal(number);
    const testing::Ran ran = service_->wait();
    service_.reset();
    return ran;
  }
  bool serves() const {
    const sockaddr_un address = addressOf(socket_path_);
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  TestClient client(uid_t uid = 0) const { return {socket_path_, host_.get(), uid}; }
  static wire::ServiceStrike portDown(Duration longest = 30s, Duration lease = 20s) {
    return {.kind = "port_down",
            .interface = "eth1",
            .longest = longest,
            .lease = lease,
            .run = "a test"};
  }
  /// A strike that is in effect.
  std::unique_ptr<TestClient> striking(const wire::ServiceStrike& wanted = portDown()) {
    auto one = std::make_unique<TestClient>(client());
    EXPECT_TRUE(one->say(wanted));
    for (const wire::FaultCall which : {wire::FaultCall::kPrepare, wire::FaultCall::kApply}) {
      const auto answer = one->call(which);
      EXPECT_EQ(answer.outcome.message, "");
    }
    EXPECT_FALSE(isUp("eth1"));
    return one;
  }
  std::string refusal(const wire::ServiceStrike& wanted, uid_t uid = 0) {
    TestClient one = client(uid);
    EXPECT_TRUE(one.say(wanted));
    const auto answer = one.call(wire::FaultCall::kPrepare);
    if (answer.outcome.code != Code::kOk) return answer.outcome.message;
    return one.call(wire::FaultCall::kApply).outcome.message;
  }
  /// All is as before, and nothing is in the journal.
  bool undone(const std::string& before) {
    return pollUntil(40s, [&] { return entries().empty(); }) && isAgain(before);
  }
  void writePolicy(const std::string& more) {
    policy_ =
        folder_.write("policy.yaml",
                      "version: 1\nmay_strike: [eth0, eth1, eth2]\nkinds: [port_down, throttle]\n"
                      "longest: 60s\n" +
                          more);
  }
  pid_t holder() const {
    const auto all = entries();
    return all.empty() ? 0 : all.front().holder.pid;
  }

  std::string socket_path_;
  std::optional<Running> service_;
};

}  // namespace faultline::safety
