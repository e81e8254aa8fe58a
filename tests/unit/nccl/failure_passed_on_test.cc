#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "resilient_ccl/nccl/pair.h"
#include "tests/support/poll_until.h"
#include "tests/unit/nccl/call_fixture.h"

namespace faultline::nccl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint32_t kOneTag = 3;
constexpr Duration kEver = 20s;
constexpr int kProcesses = 4;

/// Processes in a row, each with a link to the next one, as in a ring: process 0 sends to process
/// 1, and so on. All are in this one, over loopback.
class FailurePassedOnTest : public ::testing::Test {
 protected:
  /// Both ends of what two processes share.
  struct Neighbours {
    std::shared_ptr<Pair> from, to;
    std::unique_ptr<Connection> sends, receives;
  };

  void SetUp() override {
    const auto options = Options::read([](const std::string& name) -> std::optional<std::string> {
      if (name == "FAULTLINE_GIVE_UP") return "500ms";
      return std::nullopt;
    });
    ASSERT_TRUE(options.ok()) << options.status().message();
    const auto make = [&](int self, int peer) {
      return Pair::create({.options = *options,
                           .rails = {{.device = "", .address = INADDR_LOOPBACK}},
                           .partners = {{}},
                           .ioThreads = {},
                           .management = INADDR_LOOPBACK,
                           .identity = identities_[self],
                           .side = self < peer ? 0 : 1,
                           .self = nameOf(self),
                           .peer = nameOf(peer),
                           .failure = failures_[self]});
    };
    for (auto& failure : failures_) failure = std::make_shared<FirstFailure>();
    for (auto& identity : identities_) identity = newIdentity();
    for (int i = 0; i + 1 < kProcesses; ++i) {
      auto from = make(i, i + 1), to = make(i + 1, i);
      ASSERT_TRUE(from.ok() && to.ok()) << from.status().message() << to.status().message();
      ASSERT_TRUE(
          (*from)
              ->meet(identities_[i + 1]->keys.publicKey(), (*to)->address(), (*to)->incarnation())
              .ok());
      ASSERT_TRUE(
          (*to)
              ->meet(identities_[i]->keys.publicKey(), (*from)->address(), (*from)->incarnation())
              .ok());
      links_.push_back({.from = *from, .to = *to, .sends = {}, .receives = {}});
    }
    ASSERT_TRUE(test::pollUntil(kEver, [&] {
      bool all = true;
      for (const Neighbours& link : links_) {
        for (const auto& pair : {link.from, link.to}) {
          const Result<bool> ready = pair->ready();
          all = ready.ok() && *ready && all;
        }
      }
      return all;
    }));
    for (Neighbours& link : links_) {
      link.sends = Pair::open(link.from, 7, /*sends=*/true);
      link.receives = Pair::open(link.to, 7, /*sends=*/false);
      // What has carried nothing has no streams that could end.
      Request* const received = receive(link);
      Request* const sent = send(link);
      bool came = false, went = false;
      ASSERT_TRUE(test::pollUntil(kEver, [&] {
        came = came || *link.to->test(*received, nullptr);
        went = went || *link.from->test(*sent, nullptr);
        return came && went;
      }));
    }
  }

  static std::string nameOf(int process) { return "p" + std::to_string(process); }

  Request* send(Neighbours& link) {
    return link.from->send(*link.sends, kOneTag, memory_.data(),
                           static_cast<Bytes>(memory_.size()));
  }
  Request* receive(Neighbours& link) {
    const Pair::Buffer buffer{kOneTag, memory_.data(), static_cast<Bytes>(memory_.size())};
    return link.to->receive(*link.receives, std::span(&buffer, 1));
  }
  /// What the request fails by, while all processes but process 0 go on.
  std::string failureOf(Pair& pair, Request& request) {
    Result<bool> outcome = false;
    EXPECT_TRUE(test::pollUntil(kEver, [&] {
      for (std::size_t i = 0; i < links_.size(); ++i) {
        if (i > 0 && links_[i].from) (void)links_[i].from->tend(now());
        (void)links_[i].to->tend(now());
      }
      outcome = pair.test(request, nullptr);
      return !outcome.ok() || *outcome;
    }));
    return std::string(outcome.status().message());
  }

  std::array<std::shared_ptr<const Identity>, kProcesses> identities_;
  std::array<std::shared_ptr<FirstFailure>, kProcesses> failures_;
  std::vector<Neighbours> links_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(100'000);
};

// Process 0 is lost. Process 1 has a link to it, processes 2 and 3 have none.
TEST_F(FailurePassedOnTest, EachProcessSaysWhoWasLostAndToWhom) {
  Request* const first = receive(links_[0]);
  Request* const second = receive(links_[1]);
  Request* const third = receive(links_[2]);
  const std::string lost = failureOf(*links_[0].to, *first);
  EXPECT_THAT(lost,
              AllOf(HasSubstr("p0 has not been heard on any path for 400ms"), HasSubstr("rail 0")));
  // As NCCL's proxies, which close what they have when a call has failed.
  links_[1].from->close(*links_[1].sends);
  const std::string passedOn = failureOf(*links_[1].to, *second);
  EXPECT_THAT(passedOn, AllOf(HasSubstr("p1 sends nothing in this stream any more"),
                              HasSubstr("p1: " + lost)));
  links_[2].from->close(*links_[2].sends);
  const std::string fromAfar = failureOf(*links_[2].to, *third);
  EXPECT_THAT(fromAfar, AllOf(HasSubstr("p2 sends nothing in this stream any more"),
                              HasSubstr("p1: " + lost), Not(HasSubstr("p2: "))));
}

// What ends at the receiving end fails the sender's requests.
TEST_F(FailurePassedOnTest, AnEndThatSendsHearsItToo) {
  Request* const sent = send(links_[2]);  // nobody has asked for it
  failures_[3]->note("p3: what ended its calls", FirstFailure::Kind::kCause, now());
  links_[2].to->close(*links_[2].receives);
  EXPECT_THAT(failureOf(*links_[2].from, *sent),
              AllOf(HasSubstr("p3 receives nothing in this stream any more; its reason, told "),
                    HasSubstr(" before: p3: what ended its calls")));
  EXPECT_EQ(failures_[2]->kept().why, "p3: what ended its calls") << "as it was told";
}

// Its end is not that of a stream: none has begun.
TEST_F(FailurePassedOnTest, AConnectionThatCarriedNothingEndsForWhoWaitsOnIt) {
  Neighbours& link = links_[2];
  for (const bool sends : {true, false}) {
    const std::uint32_t number = sends ? 8 : 9;
    link.sends = Pair::open(link.from, number, /*sends=*/true);
    link.receives = Pair::open(link.to, number, /*sends=*/false);
    failures_[sends ? 2 : 3]->note("what ended its calls", FirstFailure::Kind::kCause, now());
    // One that was posted before the other end has closed it, and one after that.
    for (int i = 0; i < 2; ++i) {
      Request* const waits = sends ? receive(link) : send(link);
      if (i == 0) (sends ? link.from : link.to)->close(sends ? *link.sends : *link.receives);
      EXPECT_THAT(failureOf(sends ? *link.to : *link.from, *waits),
                  AllOf(HasSubstr(sends ? "p2 has closed this connection; its reason, told "
                                        : "p3 has closed this connection; its reason, told "),
                        HasSubstr("what ended its calls")));
    }
  }
}

TEST_F(FailurePassedOnTest, OtherConnectionsGoOn) {
  Neighbours& link = links_[2];
  const auto unused = Pair::open(link.from, 8, /*sends=*/true);
  // The same number in the other direction is another one.
  const auto alike = Pair::open(link.from, 7, /*sends=*/false);
  link.from->close(*unused);
  link.from->close(*alike);
  Request* const received = receive(link);
  Request* const sent = send(link);
  EXPECT_EQ(failureOf(*link.to, *received), "");
  EXPECT_EQ(failureOf(*link.from, *sent), "");
}

// A process may end without closing anything: its reason was told when it came up.
TEST_F(FailurePassedOnTest, AProcessThatSaysGoodbyeHasToldItsReason) {
  Request* const waits = receive(links_[2]);
  failures_[2]->note("p2: what ended its calls", FirstFailure::Kind::kCause, now());
  links_[2].from->sayGoodbye(now() + 10ms);
  links_[2].sends.reset();
  links_[2].from.reset();
  const std::string why = failureOf(*links_[2].to, *waits);
  EXPECT_THAT(why, HasSubstr("; its reason, told "));
  EXPECT_THAT(why, HasSubstr("p2: what ended its calls"));
}

// Nothing has failed: whoever withdraws a communicator has no reason to tell.
TEST_F(FailurePassedOnTest, AnEndWithoutAFailureHasNoReason) {
  Request* const waits = receive(links_[2]);
  links_[2].from->close(*links_[2].sends);
  EXPECT_EQ(failureOf(*links_[2].to, *waits), "p2 sends nothing in this stream any more");
  EXPECT_EQ(failures_[2]->number(), 0U);
  EXPECT_EQ(failures_[3]->kept().why, "p3: p2 sends nothing in this stream any more")
      << "for those whose calls fail by that";
}

}  // namespace
}  // namespace faultline::nccl
