#include "harness/agent/fault_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/unique_fd.h"
#include "tests/support/poll_until.h"
#include "tests/support/run_program.h"
#include "wire/service.h"

// What an agent says to the fault service of its machine, and what it makes of the answers. The
// service here says what a test tells it to; with the real one: tests/netns/hosts.

namespace faultline::agent {
namespace {

using faultline::test::pollUntil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Duration kWordPatience = 20s;
constexpr Duration kLease = 10s;

class FaultServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("SSH_CONNECTION", "10.0.0.254 40000 10.0.0.2 22", 1);
    socket_ = folder_.path() / "faultd.sock";
  }
  void TearDown() override { ::unsetenv("SSH_CONNECTION"); }

  void listen() {
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::ranges::copy(socket_, address.sun_path);
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    ASSERT_EQ(::listen(listener_.get(), 4), 0);
  }
  /// Whoever has connected.
  void accept() {
    service_.emplace(UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  }
  wire::ToService told() {
    const auto message = service_->receiveWithin(kWordPatience);
    EXPECT_TRUE(message.ok()) << message.status().message();
    auto read = wire::fromJson<wire::ToService>(message.ok() ? *message : nlohmann::json());
    EXPECT_TRUE(read.ok()) << read.status().message();
    return read.ok() ? *read : wire::ToService();
  }
  void say(const wire::FromService& message) {
    ASSERT_TRUE(service_->send(wire::toJson(message)).ok());
  }
  static wire::FromHolder awaitWord(ServiceHolder& holder) {
    std::optional<wire::FromHolder> said;
    EXPECT_TRUE(pollUntil(kWordPatience, [&] { return (said = holder.heard()).has_value(); }));
    return said.value_or(wire::FromHolder());
  }

  testing::TemporaryFolder folder_;
  std::string socket_;
  UniqueFd listener_;
  std::optional<launch::MessageChannel> service_;
  const wire::HeldFault fault_{.kind = "port_down",
                               .parameters = {{"how", "admin"}},
                               .interface = "eth1",
                               .longest = 3s,
                               .keep = {"10.0.0.3"},
                               .run = "a run"};
};

TEST_F(FaultServiceTest, IsToldOfTheFaultAndWhoMustBeReached) {
  listen();
  ServiceHolder holder(fault_, kLease, socket_);
  accept();
  const wire::ToService first = told();
  const auto* const strike = std::get_if<wire::ServiceStrike>(&first);
  ASSERT_NE(strike, nullptr);
  EXPECT_EQ(strike->version, wire::kAgentVersion);
  EXPECT_EQ(strike->kind, "port_down");
  EXPECT_EQ(strike->parameters.at("how"), "admin");
  EXPECT_EQ(strike->interface, "eth1");
  EXPECT_EQ(strike->longest, 3s);
  EXPECT_EQ(strike->lease, kLease);
  EXPECT_THAT(strike->keep, ElementsAre("10.0.0.3", "10.0.0.254")) << "with who has come by ssh";
  EXPECT_EQ(strike->run, "a run");
}

TEST_F(FaultServiceTest, CallsAndAnswersArePassedOn) {
  listen();
  ServiceHolder holder(fault_, kLease, socket_);
  accept();
  (void)told();
  EXPECT_FALSE(holder.heard());
  ASSERT_TRUE(holder.tell(wire::CallFault{wire::FaultCall::kApply}).ok());
  const wire::ToService call = told();
  ASSERT_TRUE(std::holds_alternative<wire::CallFault>(call));
  EXPECT_EQ(std::get<wire::CallFault>(call).call, wire::FaultCall::kApply);
  say(wire::HolderAnswer{.mechanism = "netlink"});
  const wire::FromHolder answer = awaitWord(holder);
  ASSERT_TRUE(std::holds_alternative<wire::HolderAnswer>(answer));
  EXPECT_EQ(std::get<wire::HolderAnswer>(answer).mechanism, "netlink");
  say(wire::HolderBroken{wire::Outcome::of(errorf(Code::kIo, "torn"))});
  const wire::FromHolder broken = awaitWord(holder);
  ASSERT_TRUE(std::holds_alternative<wire::HolderBroken>(broken));
}

TEST_F(FaultServiceTest, HearsOftenEnoughThatSomebodyIsThere) {
  listen();
  ServiceHolder holder(fault_, kLease, socket_);
  accept();
  (void)told();
  holder.stillThere(now());
  EXPECT_LT(holder.due(), now() + kLease / 2);
  for (int time = 0; time < 2; ++time) {
    const TimePoint due = holder.due();
    holder.stillThere(due);
    EXPECT_TRUE(std::holds_alternative<wire::StillThere>(told()));
    holder.stillThere(due);
  }
  ASSERT_TRUE(holder.tell(wire::CallFault{}).ok());
  EXPECT_TRUE(std::holds_alternative<wire::CallFault>(told()))
      << "nothing was said before its time";
}

TEST_F(FaultServiceTest, ThatHasEndedIsToldOnce) {
  listen();
  ServiceHolder holder(fault_, kLease, socket_);
  accept();
  (void)told();
  say(wire::HolderAnswer{.mechanism = "the last word"});
  service_.reset();
  EXPECT_TRUE(std::holds_alternative<wire::HolderAnswer>(awaitWord(holder)));
  const wire::FromHolder end = awaitWord(holder);
  ASSERT_TRUE(std::holds_alternative<wire::Gone>(end));
  EXPECT_THAT(std::get<wire::Gone>(end).message, HasSubstr("the fault service there"));
  EXPECT_FALSE(holder.heard());
  EXPECT_EQ(holder.fd(), -1);
  EXPECT_EQ(holder.due(), TimePoint::max());
}

TEST_F(FaultServiceTest, ThatTalksNonsenseIsLeft) {
  listen();
  ServiceHolder holder(fault_, kLease, socket_);
  accept();
  (void)told();
  say(wire::ServiceFacts{});
  const wire::FromHolder end = awaitWord(holder);
  ASSERT_TRUE(std::holds_alternative<wire::Gone>(end));
  EXPECT_THAT(std::get<wire::Gone>(end).message, HasSubstr("what it was not asked"));
}

TEST_F(FaultServiceTest, ThatIsNotThereIsTheAnswerToEachCall) {
  ServiceHolder holder(fault_, kLease, socket_);
  EXPECT_FALSE(holder.heard());
  for (int time = 0; time < 2; ++time) {
    ASSERT_TRUE(holder.tell(wire::CallFault{}).ok());
    const wire::FromHolder said = awaitWord(holder);
    ASSERT_TRUE(std::holds_alternative<wire::HolderAnswer>(said));
    const Status status = std::get<wire::HolderAnswer>(said).outcome.status();
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_THAT(status.message(),
                HasSubstr("no fault service serves there (connect to " + socket_));
    EXPECT_FALSE(holder.heard());
  }
}

TEST_F(FaultServiceTest, AnswersAQuestion) {
  listen();
  ServiceQuestion question({.interfaces = {"eth1"}, .keep = {"10.0.0.3"}}, socket_);
  accept();
  const wire::ToService first = told();
  const auto* const asked = std::get_if<wire::AskService>(&first);
  ASSERT_NE(asked, nullptr);
  EXPECT_THAT(asked->interfaces, ElementsAre("eth1"));
  EXPECT_THAT(asked->keep, ElementsAre("10.0.0.3", "10.0.0.254"));
  EXPECT_FALSE(question.answer(now()));
  say(wire::ServiceFacts{.user = "alice"});
  std::optional<wire::FaultServiceTold> answer;
  ASSERT_TRUE(
      pollUntil(kWordPatience, [&] { return (answer = question.answer(now())).has_value(); }));
  EXPECT_EQ(answer->outcome.code, Code::kOk);
  EXPECT_EQ(answer->facts.user, "alice");
}

TEST_F(FaultServiceTest, WhatKeepsItFromAnsweringIsTold) {
  const auto none = ServiceQuestion({}, socket_).answer(now());
  ASSERT_TRUE(none);
  EXPECT_EQ(none->outcome.code, Code::kUnavailable);
  listen();
  ServiceQuestion silent({}, socket_);
  EXPECT_FALSE(silent.answer(now()));
  const auto late = silent.answer(silent.due());
  ASSERT_TRUE(late);
  EXPECT_EQ(late->outcome.code, Code::kDeadlineExceeded);
  ServiceQuestion other({}, socket_);
  accept();
  accept();
  say(wire::HolderAnswer{});
  std::optional<wire::FaultServiceTold> answer;
  ASSERT_TRUE(pollUntil(kWordPatience, [&] { return (answer = other.answer(now())).has_value(); }));
  EXPECT_EQ(answer->outcome.code, Code::kInvalidArgument);
}

TEST_F(FaultServiceTest, ARefusalOfAQuestionIsToldInItsOwnWords) {
  listen();
  const std::pair<wire::FromService, Status> answers[] = {
      {wire::HolderBroken{wire::Outcome::of(errorf(Code::kIo, "read the journal: torn"))},
       errorf(Code::kIo, "read the journal: torn")},
      {wire::Gone{"it was killed"}, errorf(Code::kUnavailable, "it was killed")}};
  for (const auto& [said, meant] : answers) {
    ServiceQuestion question({}, socket_);
    accept();
    say(said);
    std::optional<wire::FaultServiceTold> answer;
    ASSERT_TRUE(
        pollUntil(kWordPatience, [&] { return (answer = question.answer(now())).has_value(); }));
    EXPECT_EQ(answer->outcome.code, meant.code());
    EXPECT_EQ(answer->outcome.message, "the fault service there: " + meant.message());
  }
}

}  // namespace
}  // namespace faultline::agent
