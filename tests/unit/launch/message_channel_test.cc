#include "harness/launch/message_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace faultline::launch {
namespace {

TEST(MessageChannelTest, MessagesArriveWholeAndInOrder) {
  auto ends = MessageChannel::makePair();
  ASSERT_TRUE(ends.ok());
  auto& [left, right] = *ends;
  EXPECT_FALSE(right.receive()->has_value());
  ASSERT_TRUE(left.send({{"first", 1}}).ok());
  ASSERT_TRUE(left.send({{"second", "zwei"}}).ok());
  EXPECT_EQ((**right.receive())["first"], 1);
  EXPECT_EQ((**right.receive())["second"], "zwei");
  EXPECT_FALSE(right.receive()->has_value());
}

TEST(MessageChannelTest, AResultOfMegabytesPasses) {
  auto ends = MessageChannel::makePair();
  ASSERT_TRUE(ends.ok());
  auto& [left, right] = *ends;
  const std::string large(8 * 1024 * 1024, 'x');
  std::thread sender([&left = left, &large] { EXPECT_TRUE(left.send({{"text", large}}).ok()); });
  const auto message = right.receiveWithin(20s);
  sender.join();
  ASSERT_TRUE(message.ok()) << message.status().message();
  EXPECT_EQ((*message)["text"], large);
}

/// Two ends over two pipes, which block, as those of a shell do.
std::pair<MessageChannel, MessageChannel> overPipes() {
  int there[2];
  int back[2];
  EXPECT_EQ(::pipe2(there, O_CLOEXEC), 0);
  EXPECT_EQ(::pipe2(back, O_CLOEXEC), 0);
  return {MessageChannel(UniqueFd(back[0]), UniqueFd(there[1])),
          MessageChannel(UniqueFd(there[0]), UniqueFd(back[1]))};
}

TEST(MessageChannelTest, TwoPipesAreAChannelToo) {
  auto [left, right] = overPipes();
  EXPECT_FALSE(right.receive()->has_value()) << "it does not wait";
  ASSERT_TRUE(left.send({{"there", 1}}).ok());
  ASSERT_TRUE(right.send({{"back", 2}}).ok());
  EXPECT_EQ((*right.receiveWithin(10s))["there"], 1);
  EXPECT_EQ((*left.receiveWithin(10s))["back"], 2);
  const std::string large(2 * 1024 * 1024, 'x');  // many times what a pipe holds
  std::thread sender([&left = left, &large] { EXPECT_TRUE(left.send({{"text", large}}).ok()); });
  const auto message = right.receiveWithin(20s);
  sender.join();
  ASSERT_TRUE(message.ok()) << message.status().message();
  EXPECT_EQ((*message)["text"], large);
}

TEST(MessageChannelTest, APipeWhoseOtherEndIsGoneIsAnError) {
  std::signal(SIGPIPE, SIG_IGN);
  auto [left, right] = overPipes();
  ASSERT_TRUE(left.send({{"last", true}}).ok());
  left = MessageChannel(UniqueFd(), UniqueFd());
  EXPECT_TRUE((**right.receive())["last"]);
  EXPECT_EQ(right.receive().status().code(), Code::kUnavailable);
  EXPECT_EQ(right.send({{"to", "nobody"}}).code(), Code::kUnavailable);
}

TEST(MessageChannelTest, WhatWasSentBeforeTheEndIsStillReturned) {
  auto ends = MessageChannel::makePair();
  ASSERT_TRUE(ends.ok());
  ASSERT_TRUE(ends->first.send({{"last", true}}).ok());
  ends->first.release().reset();
  EXPECT_TRUE((**ends->second.receive())["last"]);
  EXPECT_EQ(ends->second.receive().status().code(), Code::kUnavailable);
  EXPECT_EQ(ends->second.send({{"to", "nobody"}}).code(), Code::kUnavailable);
}

TEST(MessageChannelTest, DescriptorsComeWithTheirMessages) {
  auto ends = MessageChannel::makePair();
  ASSERT_TRUE(ends.ok());
  auto& [left, right] = *ends;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  UniqueFd read(pipe[0]);
  UniqueFd write(pipe[1]);
  const int both[] = {read.get(), write.get()};
  ASSERT_TRUE(left.send({{"first", 1}}).ok());
  ASSERT_TRUE(left.send({{"second", std::string(100'000, 'x')}}, both).ok());
  ASSERT_TRUE(left.send({{"third", 3}}, std::span(both).first(1)).ok());
  read.reset();
  write.reset();
  EXPECT_EQ((**right.receive())["first"], 1);
  EXPECT_TRUE((**right.receive()).contains("second"));
  const auto from = right.takeDescriptor();
  const auto to = right.takeDescriptor();
  ASSERT_TRUE(from && to);
  ASSERT_EQ(::write(to->get(), "!", 1), 1);
  char got = 0;
  EXPECT_EQ(::read(from->get(), &got, 1), 1);
  EXPECT_EQ(got, '!');
  EXPECT_NE(::fcntl(from->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ((**right.receive())["third"], 3);
  EXPECT_TRUE(right.takeDescriptor());
  EXPECT_FALSE(right.takeDescriptor());
  const std::vector<int> tooMany(MessageChannel::kMostDescriptors + 1, STDIN_FILENO);
  EXPECT_EQ(left.send({{"fourth", 4}}, tooMany).code(), Code::kInvalidArgument);
}

TEST(MessageChannelTest, NonsenseFromTheOtherEndIsAnError) {
  for (const std::string& bytes :
       {std::string("\x03\0\0\0{]!", 7), std::string("\xff\xff\xff\xff", 4)}) {
    auto ends = MessageChannel::makePair();
    ASSERT_TRUE(ends.ok());
    ASSERT_EQ(::send(ends->first.fd(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(ends->second.receive().status().code(), Code::kIo);
  }
}

TEST(MessageChannelTest, WaitingEndsInTime) {
  auto ends = MessageChannel::makePair();
  ASSERT_TRUE(ends.ok());
  EXPECT_EQ(ends->second.receiveWithin(20ms).status().code(), Code::kDeadlineExceeded);
}

TEST(MessageChannelTest, AnEndThatDoesNotReadIsWaitedForOnlyAsLongAsSomebodyDoes) {
  auto ends = MessageChannel::makePair();
  ASSERT_TRUE(ends.ok());
  int asked = 0;
  const nlohmann::json large{{"text", std::string(16 << 20, 'x')}};
  const TimePoint begun = now();
  const Status status = ends->first.send(large, {}, [&asked] { return ++asked > 3; });
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_LT(now() - begun, MessageChannel::kSendTimeout / 2);
  EXPECT_GT(now() - begun, 2 * kGiveUpInterval) << "it has waited in between";
}

TEST(MessageChannelTest, TextThatIsNotUtf8DoesNotCostTheMessage) {
  auto ends = MessageChannel::makePair();
  ASSERT_TRUE(ends.ok());
  ASSERT_TRUE(ends->first.send({{"output", "\xff\xfe"}, {"code", 3}}).ok());
  EXPECT_EQ((*ends->second.receiveWithin(1s))["code"], 3);
}

}  // namespace
}  // namespace faultline::launch
