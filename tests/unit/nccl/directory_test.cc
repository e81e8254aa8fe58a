#include "resilient_ccl/nccl/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <iterator>
#include <memory>

#include "tests/support/poll_until.h"
#include "tests/unit/nccl/call_fixture.h"

namespace faultline::nccl {
namespace {

constexpr Duration kAges = 20s;

/// The directory of a process, and another process, which the test plays, over loopback.
class DirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto options = Options::read([](const std::string&) { return std::nullopt; });
    ASSERT_TRUE(options.ok());
    options->ioThreads = 0;
    options->giveUp = giveUp();
    const Interface loopback{
        .name = "lo", .address = INADDR_LOOPBACK, .up = true, .loopback = true};
    auto directory =
        Directory::create(*options, {{.interface = loopback, .pciPath = {}}}, loopback);
    ASSERT_TRUE(directory.ok()) << directory.status().message();
    directory_ = std::move(*directory);
    alone_ = descriptors();
    listener_ = directory_->listen();
    handle_ = directory_->handleOf(listener_);
    // The smaller id: this process is number 0 of the two.
    do {
      self_ = newIdentity();
    } while (!(self_->id() < handle_.process));
    auto pair = Pair::create({.options = *options,
                              .rails = {{.device = "", .address = INADDR_LOOPBACK}},
                              .partners = {{}},
                              .ioThreads = {},
                              .management = INADDR_LOOPBACK,
                              .identity = self_,
                              .side = 0,
                              .self = "caller",
                              .peer = handle_.name});
    ASSERT_TRUE(pair.ok()) << pair.status().message();
    pair_ = *pair;
    greeting_ = {.incarnation = pair_->incarnation(),
                 .listener = listener_,
                 .connection = 0,
                 .terms = {.rails = 1,
                           .chunkBytes = static_cast<std::uint32_t>(options->chunkBytes),
                           .policy = static_cast<std::uint32_t>(options->policy),
                           .smallMessage = static_cast<std::uint32_t>(options->smallMessage)},
                 .name = "caller",
                 .address = pair_->address()};
  }

  virtual Duration giveUp() const { return 10s; }

  /// Calls, and is gone when it has the answer.
  Result<Answer> call() const {
    ASSIGN_OR_RETURN(Call call, Call::begin({.from = INADDR_LOOPBACK,
                                             .to = handle_,
                                             .self = self_,
                                             .greeting = greeting_,
                                             .deadline = now() + kAges,
                                             .patience = kAges}));
    Result<std::optional<Answer>> answer = std::optional<Answer>();
    (void)test::pollUntil(kAges, [&] {
      answer = call.advance(now());
      return !answer.ok() || *answer;
    });
    RETURN_IF_ERROR(answer.status());
    return answer->value_or(Answer{.refusal = "nothing"});
  }

  static std::ptrdiff_t descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  }

  std::unique_ptr<Directory> directory_;
  std::ptrdiff_t alone_ = 0;  // descriptors while nobody has called
  std::uint64_t listener_ = 0;
  Handle handle_;
  std::shared_ptr<const Identity> self_;
  std::shared_ptr<Pair> pair_;
  Greeting greeting_;
};

// It did not hear the answer: its call was cut off, or it came too late to read it.
TEST_F(DirectoryTest, WhoCallsAgainForAConnectionGetsOneConnection) {
  for (int i = 0; i < 3; ++i) {
    const auto answer = call();
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    ASSERT_EQ(answer->refusal, "");
    ASSERT_TRUE(pair_->meet(answer->key, answer->address, answer->incarnation).ok());
  }
  greeting_.connection = 1;
  ASSERT_TRUE(call().ok());
  std::vector<std::uint32_t> numbers;
  ASSERT_TRUE(test::pollUntil(kAges, [&] {
    EXPECT_TRUE(pair_->ready().ok());
    const auto connection = directory_->accept(listener_);
    EXPECT_TRUE(connection.ok()) << connection.status().message();
    if (connection.ok() && *connection) numbers.push_back((*connection)->number);
    return numbers.size() == 2;
  }));
  EXPECT_THAT(numbers, ::testing::ElementsAre(0U, 1U));
  pair_->sayGoodbye(now() + kAges);
}

TEST_F(DirectoryTest, AProcessIsCalledByItsHostItsNumberAndWhereItIsReached) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size()), 0);
  EXPECT_EQ(handle_.name, nameOfProcess(host.data(), ::getpid(), "127.0.0.1"));
}

TEST_F(DirectoryTest, WhatIsAbandonedIsAllOfTheProcess) {
  const auto answer = call();
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  ASSERT_TRUE(pair_->meet(answer->key, answer->address, answer->incarnation).ok());
  std::unique_ptr<Connection> connection;
  ASSERT_TRUE(test::pollUntil(kAges, [&] {
    EXPECT_TRUE(pair_->ready().ok());
    auto accepted = directory_->accept(listener_);
    EXPECT_TRUE(accepted.ok()) << accepted.status().message();
    if (accepted.ok() && *accepted) connection = std::move(*accepted);
    return connection != nullptr;
  }));
  EXPECT_FALSE(connection->pair->failed());
  directory_->abandon();
  EXPECT_TRUE(connection->pair->failed());
}

// A process may outlive many others that it has talked to.
TEST_F(DirectoryTest, OfAProcessThatHasEndedNothingStaysButItsAccount) {
  const auto answer = call();
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  ASSERT_EQ(answer->refusal, "");
  ASSERT_TRUE(pair_->meet(answer->key, answer->address, answer->incarnation).ok());
  std::unique_ptr<Connection> connection;
  ASSERT_TRUE(test::pollUntil(kAges, [&] {
    EXPECT_TRUE(pair_->ready().ok());
    auto accepted = directory_->accept(listener_);
    EXPECT_TRUE(accepted.ok()) << accepted.status().message();
    if (accepted.ok() && *accepted) connection = std::move(*accepted);
    return connection != nullptr;
  }));
  pair_->sayGoodbye(now() + kAges);
  pair_.reset();
  ASSERT_TRUE(test::pollUntil(kAges, [&] { return connection->pair->failed(); }));
  EXPECT_GT(descriptors(), alone_) << "somebody may still ask it";
  connection.reset();
  EXPECT_TRUE(test::pollUntil(kAges, [&] { return descriptors() <= alone_; })) << descriptors();
  EXPECT_EQ(directory_->accounts().latest.size(), 1u);
}

// It has heard the call, and not answered in time.
TEST_F(DirectoryTest, WhoWasCalledInVainMayCallBack) {
  Handle handle = handle_;
  pair_.reset();
  const std::ptrdiff_t before = descriptors();
  handle.process = newIdentity()->id();
  handle.rendezvous.port = 1;  // nobody listens there
  const auto attempt = directory_->connect(handle, 0);
  ASSERT_TRUE(attempt.ok()) << attempt.status().message();
  Result<std::unique_ptr<Connection>> outcome = std::unique_ptr<Connection>();
  EXPECT_TRUE(test::pollUntil(kAges, [&] {
    outcome = directory_->finish(*attempt);
    return !outcome.ok();
  }));
  EXPECT_FALSE(test::pollUntil(50ms, [&] { return descriptors() <= before; }));
}

class ImpatientDirectoryTest : public DirectoryTest {
 protected:
  Duration giveUp() const override { return 200ms; }
};

// The process whose handle it is has died meanwhile, as has the one that took its place.
TEST_F(ImpatientDirectoryTest, OfAProcessThatIsNeverMetNothingStays) {
  Handle handle = handle_;
  pair_.reset();
  const std::ptrdiff_t before = descriptors();
  for (int i = 0; i < 3; ++i) {
    handle.process = newIdentity()->id();
    handle.rendezvous.port = 1;  // nobody listens there
    const auto attempt = directory_->connect(handle, 0);
    ASSERT_TRUE(attempt.ok()) << attempt.status().message();
    if (i == 2) continue;  // nobody asks for its outcome
    Result<std::unique_ptr<Connection>> outcome = std::unique_ptr<Connection>();
    EXPECT_TRUE(test::pollUntil(kAges, [&] {
      outcome = directory_->finish(*attempt);
      return !outcome.ok();
    }));
    EXPECT_THAT(outcome.status().message(), ::testing::HasSubstr("Connection refused"));
  }
  EXPECT_TRUE(test::pollUntil(kAges, [&] { return descriptors() <= before; })) << descriptors();
  EXPECT_TRUE(directory_->accounts().latest.empty());
}

// It has called, and died before it had the answer.
TEST_F(ImpatientDirectoryTest, NorOfOneWhoseRailsNeverComeUp) {
  pair_.reset();
  const auto answer = call();
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  ASSERT_EQ(answer->refusal, "");
  EXPECT_GT(descriptors(), alone_);
  directory_->closeListener(listener_);  // nobody accepts the connection any more
  EXPECT_TRUE(test::pollUntil(kAges, [&] { return descriptors() <= alone_; })) << descriptors();
  const Accounts accounts = directory_->accounts();
  ASSERT_EQ(accounts.latest.size(), 1u);
  EXPECT_THAT(accounts.latest[0].failure, ::testing::HasSubstr("no rail to caller came up"));
}

}  // namespace
}  // namespace faultline::nccl
