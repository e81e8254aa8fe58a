#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "resilient_ccl/auth/sealed_path.h"
#include "resilient_ccl/channel/wire.h"
#include "resilient_ccl/fabric/note.h"
#include "resilient_ccl/nccl/directory.h"
#include "resilient_ccl/nccl/pair.h"
#include "tests/support/network_taps.h"
#include "tests/support/poll_until.h"
#include "tests/unit/nccl/call_fixture.h"

// Somebody on the network hears everything that two processes under NCCL say, knows their handles,
// and says what it likes. The processes, their doors and their sockets are real, over loopback.

namespace faultline::nccl {
namespace {

constexpr std::uint32_t kATag = 3;
constexpr Duration kAttackWait = 20s;

Options defaultOptions() {
  auto options = Options::read([](const std::string&) { return std::nullopt; });
  EXPECT_TRUE(options.ok());
  options->ioThreads = 0;
  return *options;
}

/// Two processes that have met, with a tap in what process 0 sends to process 1.
class TappedPair {
 public:
  TappedPair(const std::shared_ptr<const Identity>& one,
             const std::shared_ptr<const Identity>& other) {
    const std::array identities{one, other};
    for (int side = 0; side < 2; ++side) {
      auto pair = Pair::create({.options = defaultOptions(),
                                .rails = {{.device = "", .address = INADDR_LOOPBACK}},
                                .partners = {{}},
                                .ioThreads = {},
                                .management = INADDR_LOOPBACK,
                                .identity = identities[side],
                                .side = side,
                                .self = side == 0 ? "one" : "other",
                                .peer = side == 0 ? "other" : "one"});
      EXPECT_TRUE(pair.ok()) << pair.status().message();
      pairs_[side] = *pair;
    }
    fabric::ProcessAddress tapped = pairs_[1]->address();
    datagrams.push_back(std::make_unique<test::DatagramTap>(tapped.rails[0].control));
    tapped.rails[0].control = datagrams.back()->endpoint();
    datagrams.push_back(std::make_unique<test::DatagramTap>(tapped.management));
    tapped.management = datagrams.back()->endpoint();
    connection = std::make_unique<test::ConnectionTap>(tapped.rails[0].data);
    tapped.rails[0].data = connection->endpoint();
    EXPECT_TRUE(pairs_[0]->meet(other->keys.publicKey(), tapped, pairs_[1]->incarnation()).ok());
    EXPECT_TRUE(pairs_[1]
                    ->meet(one->keys.publicKey(), pairs_[0]->address(), pairs_[0]->incarnation())
                    .ok());
    EXPECT_TRUE(until([&] {
      bool both = true;
      for (const auto& pair : pairs_) {
        const auto ready = pair->ready();
        both = ready.ok() && *ready && both;
      }
      return both;
    }));
    for (int from = 0; from < 2; ++from) {
      const auto number = static_cast<std::uint32_t>(7 + from);
      senders_[from] = Pair::open(pairs_[from], number, /*sends=*/true);
      receivers_[from] = Pair::open(pairs_[1 - from], number, /*sends=*/false);
    }
  }

  bool until(const std::function<bool()>& done) {
    const TimePoint deadline = now() + kAttackWait;
    while (!done()) {
      if (now() > deadline) return false;
      for (const auto& pair : pairs_) (void)pair->tend(now());
      for (auto& tap : datagrams) tap->pump();
      connection->pump();
    }
    return true;
  }
  /// The job goes on: messages in both directions, so that both ends have much to say.
  void talk(int messages = 20) {
    for (std::int64_t i = 0; i < messages; ++i) {
      std::array<std::int64_t, 2> to{-1, -1};
      std::array<Request*, 2> got{}, sent{};
      for (int from = 0; from < 2; ++from) {
        const Pair::Buffer buffer{kATag, reinterpret_cast<std::byte*>(&to[from]), sizeof(i)};
        got[from] = pairs_[1 - from]->receive(*receivers_[from], std::span(&buffer, 1));
        sent[from] = pairs_[from]->send(*senders_[from], kATag,
                                        reinterpret_cast<const std::byte*>(&i), sizeof(i));
      }
      ASSERT_TRUE(until([&] {
        bool all = true;
        for (int from = 0; from < 2; ++from) {
          if (got[from] != nullptr && *pairs_[1 - from]->test(*got[from], nullptr)) {
            got[from] = nullptr;
          }
          if (sent[from] != nullptr && *pairs_[from]->test(*sent[from], nullptr)) {
            sent[from] = nullptr;
          }
          all = all && got[from] == nullptr && sent[from] == nullptr;
        }
        return all;
      }));
      ASSERT_EQ(to, (std::array<std::int64_t, 2>{i, i}));
    }
  }
  std::size_t heard() const { return datagrams[0]->heard.size() + datagrams[1]->heard.size(); }
  /// How many datagrams it takes to say something depends on the time.
  void talkUntilHeard(std::size_t count) {
    constexpr int kRounds = 200;
    for (int i = 0; i < kRounds && heard() < count; ++i) talk();
    ASSERT_GE(heard(), count) << "too little was said";
  }
  fabric::FabricCounters counters() const { return pairs_[1]->account().counters; }
  void awaitRejected(std::uint64_t count) {
    ASSERT_TRUE(until([&] { return counters().datagramsRejected >= count; }))
        << counters().datagramsRejected << " of " << count;
  }
  void expectWhole() const {
    EXPECT_FALSE(pairs_[0]->failed() || pairs_[1]->failed());
    EXPECT_EQ(pairs_[0]->account().failovers + pairs_[1]->account().failovers, 0U);
  }
  Pair& pair(int side) { return *pairs_[side]; }

  std::vector<std::unique_ptr<test::DatagramTap>> datagrams;  // by path
  std::unique_ptr<test::ConnectionTap> connection;

 private:
  std::array<std::shared_ptr<Pair>, 2> pairs_;
  std::array<std::unique_ptr<Connection>, 2> senders_, receivers_;  // by who sends
};

class NcclAttackTest : public ::testing::Test {
 protected:
  const std::shared_ptr<const Identity> one_ = newIdentity(), other_ = newIdentity();
};

std::vector<std::byte> sealed(std::span<const std::byte> datagram, auth::Authenticator& with,
                              std::uint64_t number) {
  auth::SealedPath path;
  while (--number > 0) (void)path.seal(with, datagram);
  const auth::Seal seal = path.seal(with, datagram);
  std::vector<std::byte> bytes(datagram.begin(), datagram.end());
  const auto its = std::as_bytes(std::span(&seal, 1));
  bytes.insert(bytes.end(), its.begin(), its.end());
  return bytes;
}

TEST_F(NcclAttackTest, RealDatagramsSentAgainCutDamagedOrElsewhereChangeNothing) {
  TappedPair pair(one_, other_);
  pair.talkUntilHeard(12);
  std::uint64_t rejected = pair.counters().datagramsRejected;
  const std::uint64_t before = rejected;
  for (std::size_t path = 0; path < pair.datagrams.size(); ++path) {
    test::DatagramTap& tap = *pair.datagrams[path];
    const auto& elsewhere = pair.datagrams[1 - path]->behind();
    const auto recorded = tap.heard;
    for (const auto& heard : recorded) {
      auto damaged = heard;
      damaged[rejected % damaged.size()] ^= std::byte{4};
      tap.send(heard, tap.behind());
      tap.send(heard, elsewhere);
      tap.send(std::span(heard).first(heard.size() - 1), tap.behind());
      tap.send(damaged, tap.behind());
      rejected += 4;
      pair.awaitRejected(rejected);
    }
  }
  EXPECT_GE(rejected, before + 48);
  EXPECT_EQ(pair.counters().datagramsRejected, rejected);
  pair.talk();
  pair.expectWhole();
}

TEST_F(NcclAttackTest, SpoofedFailuresGoodbyesAndAcknowledgementsChangeNothing) {
  using namespace channel;
  TappedPair pair(one_, other_);
  pair.talk();
  const std::uint64_t before = pair.counters().datagramsRejected;
  // The keys that a listener could think of: public ones, and none.
  std::array<std::byte, auth::JobKey::kBytes> beginning{};
  std::memcpy(beginning.data(), one_->keys.publicKey().data(), beginning.size());
  auth::Authenticator publicKey{auth::JobKey(beginning)}, zero{auth::JobKey()},
      stranger{auth::JobKey::random()};
  const RailRecord failed{.rail = 0, .epoch = 1, .held = {}};
  // As Fabric carries what Pair says.
  const auto wordOf = [](std::span<const std::byte> said) {
    const auto kind = fabric::Note::Kind::kWord;
    const auto its = std::as_bytes(std::span(&kind, 1));
    std::vector<std::byte> word(its.begin(), its.end());
    word.insert(word.end(), said.begin(), said.end());
    return word;
  };
  const auto goodbye = wordOf(std::as_bytes(std::span("done", 4)));
  const FailureWord failure{.number = 1, .part = 0, .parts = 1};
  const auto why = wordOf(std::as_bytes(std::span(&failure, 1)));
  const std::vector<std::pair<RecordType, std::span<const std::byte>>> words{
      {RecordType::kRailFailed, bytesOf(failed)},
      {RecordType::kRailFenced, bytesOf(failed)},
      {RecordType::kAbort, goodbye},
      {RecordType::kNote, goodbye},
      {RecordType::kNote, why}};
  std::uint64_t attacks = 0;
  for (std::size_t path = 0; path < pair.datagrams.size(); ++path) {
    test::DatagramTap& tap = *pair.datagrams[path];
    for (const auto& [type, payload] : words) {
      DatagramWriter writer;
      const std::array receipts{RailReceipt::of(1, {.base = 1000})};
      writer.begin({.source = 0,
                    .destination = 1,
                    .path = static_cast<std::uint8_t>(path),
                    .control = {.base = 1000}},
                   receipts);
      ASSERT_TRUE(writer.add({type, 1000, payload}));
      const auto datagram = writer.finish();
      tap.send(datagram, tap.behind());
      for (auth::Authenticator* liar : {&publicKey, &zero, &stranger}) {
        tap.send(sealed(datagram, *liar, 1000), tap.behind());
      }
      attacks += 4;
      pair.awaitRejected(before + attacks);
    }
  }
  EXPECT_EQ(pair.counters().datagramsRejected, before + attacks);
  pair.talk();
  pair.expectWhole();
}

// Both processes have made a new communicator since: their keys are the same, their fabrics new.
TEST_F(NcclAttackTest, WhatWasSaidByAnEarlierIncarnationIsNotBelievedByTheNext) {
  std::vector<std::vector<std::vector<std::byte>>> recorded;
  std::vector<std::byte> hello;
  {
    TappedPair earlier(one_, other_);
    earlier.talkUntilHeard(12);
    for (const auto& tap : earlier.datagrams) recorded.push_back(tap->heard);
    hello = earlier.connection->hello;
  }
  ASSERT_EQ(hello.size(), sizeof(fabric::SignedHello));
  TappedPair pair(one_, other_);
  const std::uint64_t before = pair.counters().datagramsRejected;
  std::uint64_t attacks = 0;
  for (std::size_t path = 0; path < recorded.size(); ++path) {
    for (const auto& heard : recorded[path]) {
      pair.datagrams[path]->send(heard, pair.datagrams[path]->behind());
      pair.awaitRejected(before + ++attacks);
    }
  }
  EXPECT_GE(attacks, 12U);
  EXPECT_EQ(pair.counters().datagramsRejected, before + attacks);
  const std::uint64_t connections = pair.counters().connectionsRejected;
  const UniqueFd socket =
      transport::tcp::beginConnect({INADDR_LOOPBACK, "", 0}, pair.connection->behind()).value();
  ASSERT_TRUE(pair.until([&] { return transport::tcp::connectOutcome(socket.get()).ok(); }));
  ASSERT_TRUE(
      transport::tcp::sendAll(socket.get(), hello.data(), hello.size(), now() + kAttackWait).ok());
  ASSERT_TRUE(pair.until([&] { return pair.counters().connectionsRejected == connections + 1; }));
  pair.talk();
  pair.expectWhole();
}

/// Whether the key opens a datagram, as its receiver would.
bool opens(const auth::JobKey& key, std::span<const std::byte> datagram) {
  auth::Authenticator authenticator(key);
  auth::SealedPath path;
  return path.open(authenticator, datagram).has_value();
}

/// A process with its door, and another one whose meeting with it the test spells out.
class MeetingAttackTest : public NcclAttackTest {
 protected:
  void SetUp() override {
    const Interface loopback{
        .name = "lo", .address = INADDR_LOOPBACK, .up = true, .loopback = true};
    auto directory =
        Directory::create(defaultOptions(), {{.interface = loopback, .pciPath = {}}}, loopback);
    ASSERT_TRUE(directory.ok()) << directory.status().message();
    directory_ = std::move(*directory);
    listener_ = directory_->listen();
    handle_ = directory_->handleOf(listener_);
  }
  static std::optional<std::string> hear(Frames& from) {
    std::optional<std::string> heard;
    (void)test::pollUntil(kAttackWait, [&] {
      (void)from.flush();
      const auto frame = from.receive();
      if (frame.ok() && *frame) heard = **frame;
      return !frame.ok() || heard;
    });
    return heard;
  }
  Frames call() const {
    auto socket = transport::tcp::beginConnect({INADDR_LOOPBACK, "", 0}, handle_.rendezvous);
    EXPECT_TRUE(socket.ok());
    return Frames(std::move(*socket));
  }

  std::unique_ptr<Directory> directory_;
  std::uint64_t listener_ = 0;
  Handle handle_;
};

TEST_F(MeetingAttackTest, NothingThatGoesOverTheWireIsTheKeyOfWhatIsSaidLater) {
  const auto options = defaultOptions();
  auto self = newIdentity();
  while (!(self->id() < handle_.process)) self = newIdentity();
  auto mine = Pair::create({.options = options,
                            .rails = {{.device = "", .address = INADDR_LOOPBACK}},
                            .partners = {{}},
                            .ioThreads = {},
                            .management = INADDR_LOOPBACK,
                            .identity = self,
                            .side = 0,
                            .self = "caller",
                            .peer = handle_.name});
  ASSERT_TRUE(mine.ok());
  // All that a listener hears: NCCL's bootstrap, the meeting, the beginning of the rail.
  std::string wire(kNetHandleBytes, '\0');
  handle_.write(std::as_writable_bytes(std::span<char, kNetHandleBytes>(wire.data(), wire.size())));
  Frames caller = call();
  const auto challenge = hear(caller);
  ASSERT_TRUE(challenge);
  auto meeting = Meeting::ofCaller(*self, handle_, *challenge);
  ASSERT_TRUE(meeting.ok()) << meeting.status().message();
  Greeting greeting{.key = self->keys.publicKey(),
                    .incarnation = (*mine)->incarnation(),
                    .listener = listener_,
                    .terms = {.rails = 1,
                              .chunkBytes = static_cast<std::uint32_t>(options.chunkBytes),
                              .policy = static_cast<std::uint32_t>(options.policy),
                              .smallMessage = static_cast<std::uint32_t>(options.smallMessage)},
                    .name = "caller",
                    .address = (*mine)->address()};
  const std::string said = meeting->signGreeting(greeting.serialize());
  caller.send(said);
  const auto frame = hear(caller);
  ASSERT_TRUE(frame);
  const auto proved = meeting->openAnswer(*frame);
  ASSERT_TRUE(proved);
  const auto answer = Answer::parse(*proved);
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->refusal, "");
  wire += *challenge + said + *frame;
  fabric::ProcessAddress tapped = answer->address;
  test::DatagramTap datagrams(tapped.rails[0].control), management(tapped.management);
  test::ConnectionTap connection(tapped.rails[0].data);
  tapped.rails[0] = {connection.endpoint(), datagrams.endpoint()};
  tapped.management = management.endpoint();
  ASSERT_TRUE((*mine)->meet(meeting->calleesKey(), tapped, answer->incarnation).ok());
  const auto pumpUntil = [&](const std::function<bool()>& done) {
    return test::pollUntil(kAttackWait, [&] {
      for (auto* tap : {&datagrams, &management}) tap->pump();
      connection.pump();
      return done();
    });
  };
  ASSERT_TRUE(pumpUntil([&] {
    const auto ready = (*mine)->ready();
    return ready.ok() && *ready;
  }));
  // It asks for a message: that is a datagram.
  const auto receiver = Pair::open(*mine, 0, /*sends=*/false);
  std::int64_t memory = 0;
  const Pair::Buffer buffer{kATag, reinterpret_cast<std::byte*>(&memory), sizeof(memory)};
  ASSERT_NE((*mine)->receive(*receiver, std::span(&buffer, 1)), nullptr);
  ASSERT_TRUE(pumpUntil([&] {
    (void)(*mine)->tend(now());
    return !datagrams.heard.empty() && connection.heard.size() >= 72;
  }));
  for (const std::byte byte : connection.heard) wire += static_cast<char>(byte);
  const auto key =
      agreeOnPairKey(*self, meeting->calleesKey(), 0, (*mine)->incarnation(), answer->incarnation);
  ASSERT_TRUE(key.ok());
  const auto& datagram = datagrams.heard.front();
  ASSERT_TRUE(opens(*key, datagram)) << "this test would find a key";
  for (const auto byte : datagram) wire += static_cast<char>(byte);
  for (std::size_t at = 0; at + auth::JobKey::kBytes <= wire.size(); ++at) {
    std::array<std::byte, auth::JobKey::kBytes> window{};
    std::memcpy(window.data(), wire.data() + at, window.size());
    ASSERT_FALSE(opens(auth::JobKey(window), datagram)) << "bytes " << at << " of what is said";
  }
}

TEST_F(MeetingAttackTest, LiarsSlowOnesAndManyAtTheDoorAreCountedAndTheJobGoesOn) {
  // One of the job first, so that something could be broken.
  fabric::ProcessAddress address;
  address.rails = {{{INADDR_LOOPBACK, 9}, {INADDR_LOOPBACK, 9}}};
  address.management = {INADDR_LOOPBACK, 9};
  const auto callInEarnest = [&](std::uint32_t connection) {
    auto call = Call::begin(
        {.from = INADDR_LOOPBACK,
         .to = handle_,
         .self = one_,
         .greeting = {.incarnation = 77,
                      .listener = listener_,
                      .connection = connection,
                      .terms = {.rails = 1,
                                .chunkBytes =
                                    static_cast<std::uint32_t>(defaultOptions().chunkBytes),
                                .policy = static_cast<std::uint32_t>(defaultOptions().policy),
                                .smallMessage =
                                    static_cast<std::uint32_t>(defaultOptions().smallMessage)},
                      .name = "caller",
                      .address = address},
         .deadline = now() + kAttackWait,
         .patience = kAttackWait});
    EXPECT_TRUE(call.ok());
    std::optional<Answer> answer;
    EXPECT_TRUE(test::pollUntil(kAttackWait, [&] {
      const auto outcome = call->advance(now());
      EXPECT_TRUE(outcome.ok()) << outcome.status().message();
      if (outcome.ok() && *outcome) answer = **outcome;
      return !outcome.ok() || answer;
    }));
    EXPECT_TRUE(answer && answer->refusal.empty());
  };
  callInEarnest(0);
  EXPECT_EQ(directory_->accounts().callersRefused, 0U);
  // Greetings that prove nothing.
  Frames liar = call();
  const auto challenge = hear(liar);
  ASSERT_TRUE(challenge);
  liar.send(*challenge);
  EXPECT_TRUE(hear(liar));
  Handle guessed = handle_;
  guessed.token = auth::JobKey::random();
  Frames guesser = call();
  const auto its = hear(guesser);
  ASSERT_TRUE(its);
  auto meeting = Meeting::ofCaller(*other_, guessed, *its);
  ASSERT_TRUE(meeting.ok());
  Greeting greeting;
  greeting.key = other_->keys.publicKey();
  guesser.send(meeting->signGreeting(greeting.serialize()));
  EXPECT_TRUE(hear(guesser));
  EXPECT_EQ(directory_->accounts().callersRefused, 2U);
  callInEarnest(1);
  // Many that say nothing, or the beginning of something, and stay.
  std::vector<UniqueFd> strangers;
  for (std::size_t i = 0; i < 3 * Door::kMostStrangers; ++i) {
    auto socket = transport::tcp::beginConnect({INADDR_LOOPBACK, "", 0}, handle_.rendezvous);
    ASSERT_TRUE(socket.ok());
    ASSERT_TRUE(test::pollUntil(kAttackWait, [&] {
      return transport::tcp::connectError(socket->get()) == 0 &&
             send(socket->get(), "\x10\x01\x00", 3, MSG_NOSIGNAL) == 3;
    }));
    strangers.push_back(std::move(*socket));
  }
  callInEarnest(2);
  EXPECT_TRUE(test::pollUntil(kAttackWait, [&] {
    return directory_->accounts().callersRefused > 2 + Door::kMostStrangers;
  })) << directory_->accounts().callersRefused;
}

}  // namespace
}  // namespace faultline::nccl
