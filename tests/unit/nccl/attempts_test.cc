#include "resilient_ccl/nccl/attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "tests/support/poll_until.h"
#include "tests/unit/nccl/call_fixture.h"

namespace faultline::nccl {
namespace {

using ::testing::HasSubstr;

constexpr Duration kWhile = 20s;

std::ptrdiff_t openDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

/// Connects to processes that the test plays; the time is the test's.
class AttemptsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    pair_ = makePair(0);
    auto listener = transport::tcp::openListener({INADDR_LOOPBACK, "", 0});
    ASSERT_TRUE(listener.ok());
    listener_ = std::move(*listener);
  }
  std::shared_ptr<Pair> makePair(int side) {
    const auto options = Options::read([](const std::string&) { return std::nullopt; });
    EXPECT_TRUE(options.ok());
    auto pair = Pair::create({.options = *options,
                              .rails = {{.device = "", .address = INADDR_LOOPBACK}},
                              .partners = {{}},
                              .ioThreads = {},
                              .management = INADDR_LOOPBACK,
                              .identity = side == 0 ? newIdentity() : callee_.self,
                              .side = side,
                              .self = side == 0 ? "one" : "other",
                              .peer = side == 0 ? "other" : "one"});
    EXPECT_TRUE(pair.ok()) << pair.status().message();
    return *pair;
  }
  /// Takes the next call, and answers.
  Frames answered(const Answer& answer) {
    UniqueFd socket;
    EXPECT_TRUE(test::pollUntil(kWhile, [&] {
      attempts_.advance(start_);
      socket.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      return socket.valid();
    }));
    Frames end(std::move(socket));
    const std::string challenge = callee_.challenge();
    end.send(challenge);
    EXPECT_TRUE(end.flush().ok());
    std::string greeting;
    EXPECT_TRUE(test::pollUntil(kWhile, [&] {
      attempts_.advance(start_);
      const auto frame = end.receive();
      if (frame.ok() && *frame) greeting = **frame;
      return !greeting.empty();
    }));
    Meeting meeting =
        callee_.meeting(*transport::tcp::localEndpoint(listener_.get()), challenge, greeting);
    EXPECT_TRUE(meeting.openGreeting(greeting));
    end.send(meeting.signAnswer(answer.serialize()));
    EXPECT_TRUE(end.flush().ok());
    return end;
  }
  std::uint64_t begin() {
    return attempts_.add({.call = beginCall(callee_, listener_, "other", start_),
                          .peer = "other",
                          .pair = pair_,
                          .asked = start_});
  }

  const Callee callee_{};
  const TimePoint start_ = now();
  std::shared_ptr<Pair> pair_;
  UniqueFd listener_;  // mute
  Attempts attempts_;
};

TEST_F(AttemptsTest, ThoseThatNobodyAsksAboutKeepNothing) {
  const auto before = openDescriptors();
  constexpr int kCount = 20;
  for (int i = 0; i < kCount; ++i) EXPECT_NE(begin(), 0U);
  attempts_.advance(start_ + 1s);
  EXPECT_EQ(openDescriptors(), before + kCount);
  const TimePoint failed = start_ + 10s;
  attempts_.advance(failed);
  EXPECT_EQ(openDescriptors(), before);
  EXPECT_EQ(attempts_.size(), static_cast<std::size_t>(kCount));
  attempts_.advance(failed + Attempts::kRemembered - 1ms);
  EXPECT_EQ(attempts_.size(), static_cast<std::size_t>(kCount)) << "it may still be asked";
  attempts_.advance(failed + Attempts::kRemembered);
  EXPECT_EQ(attempts_.size(), 0U);
}

TEST_F(AttemptsTest, OneThatIsAnsweredNeedsNoSocketAnyMore) {
  const auto before = openDescriptors();
  const std::uint64_t number = begin();
  Frames other = answered({.refusal = "no", .incarnation = 3});
  EXPECT_TRUE(test::pollUntil(kWhile, [&] {
    attempts_.advance(start_);
    return openDescriptors() == before + 1;  // the other end's
  }));
  const auto finished = attempts_.finish(number, start_);
  ASSERT_FALSE(finished.ok());
  EXPECT_THAT(finished.status().message(), HasSubstr("other refuses: no"));
  EXPECT_EQ(attempts_.size(), 0U);
}

TEST_F(AttemptsTest, OneThatIsAskedAboutIsNotForgotten) {
  const auto other = makePair(1);
  const std::uint64_t number = begin();
  {
    const Frames end = answered({.refusal = {}, .incarnation = 3, .address = other->address()});
    ASSERT_TRUE(test::pollUntil(kWhile, [&] {
      attempts_.advance(start_);
      std::vector<pollfd> waits;
      attempts_.waitFor(waits);
      return waits.empty();
    }));
  }
  // Rails that do not come: the other end never polls.
  TimePoint time = start_;
  for (int i = 0; i < 5; ++i) {
    time += Attempts::kRemembered - 1ms;
    attempts_.advance(time);
    const auto unfinished = attempts_.finish(number, time);
    ASSERT_TRUE(unfinished.ok()) << unfinished.status().message();
    EXPECT_EQ(*unfinished, nullptr);
  }
  attempts_.advance(time + Attempts::kRemembered);
  EXPECT_EQ(attempts_.finish(number, time).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace faultline::nccl
