#include <gtest/gtest.h>
#include <sys/socket.h>

#include <map>

#include "base/random.h"
#include "loopback.h"
#include "resilient_ccl/auth/sealed_path.h"
#include "resilient_ccl/channel/wire.h"
#include "resilient_ccl/fabric/fabric.h"
#include "resilient_ccl/fabric/handshake.h"
#include "tests/support/network_taps.h"

// Somebody on the network hears everything, and sends what was said again: as it was, cut, damaged,
// or to another door. Two fabrics over loopback, with a tap between them.

namespace faultline::fabric {
namespace {

using test::ConnectionTap;
using test::DatagramTap;
using transport::tcp::beginConnect;

struct CountingClient : FabricClient {
  void sendDone(int, std::uint64_t) override { ++sent; }
  void receiveDone(int, std::uint64_t, Bytes) override { ++received; }
  void sendFailed(int, std::uint64_t, const Status& why) override {
    ADD_FAILURE() << why.message();
  }
  void receiveFailed(int, std::uint64_t, const Status& why) override {
    ADD_FAILURE() << why.message();
  }
  void failedOver(int, const channel::Failover&) override { ++failovers; }
  void failedBack(int, int, TimePoint) override {}
  void explained(int, int, channel::Cause, channel::Where) override {}
  void linkFailed(int, const Status& why) override { error = why; }

  int sent = 0, received = 0, failovers = 0;
  Status error;
};

class AttackTest : public ::testing::Test {
 protected:
  static constexpr int kRails = 2;

  void SetUp() override {
    const auth::JobKey key = auth::JobKey::random();
    FabricOptions options;
    options.jobKey = key;
    options.nics.assign(kRails, {.device = "", .address = kLoopback});
    options.managementAddress = kLoopback;
    std::vector<ProcessAddress> addresses;
    for (int i = 0; i < 2; ++i) {
      options.self = i;
      fabrics_[i] = Fabric::create(options, clients_[i]).value();
      addresses.push_back(fabrics_[i]->address());
    }
    // What process 0 sends to process 1 goes through the tap.
    std::vector<ProcessAddress> tapped = addresses;
    for (int rail = 0; rail < kRails; ++rail) {
      datagrams_.push_back(std::make_unique<DatagramTap>(addresses[1].rails[rail].control));
      tapped[1].rails[rail].control = datagrams_.back()->endpoint();
      connections_.push_back(std::make_unique<ConnectionTap>(addresses[1].rails[rail].data));
      tapped[1].rails[rail].data = connections_.back()->endpoint();
    }
    datagrams_.push_back(std::make_unique<DatagramTap>(addresses[1].management));
    tapped[1].management = datagrams_.back()->endpoint();
    ASSERT_TRUE(fabrics_[0]->connect(tapped).ok());
    ASSERT_TRUE(fabrics_[1]->connect(addresses).ok());
    ASSERT_TRUE(pollUntil([&] { return fabrics_[0]->allRailsUp() && fabrics_[1]->allRailsUp(); }));
  }

  bool pollUntil(const std::function<bool()>& done) {
    const TimePoint deadline = now() + 20s;
    while (!done()) {
      if (now() > deadline) return false;
      for (auto& fabric : fabrics_) EXPECT_TRUE(fabric->poll(200us).ok());
      for (auto& tap : datagrams_) tap->pump();
      for (auto& tap : connections_) tap->pump();
    }
    return true;
  }

  /// Messages in both directions, so that every kind of record is heard.
  void talk(std::uint32_t round) {
    const int before = clients_[0].sent + clients_[1].sent;
    std::vector<std::byte> data(300'000, static_cast<std::byte>(round));
    std::vector<std::byte> targets[2];
    for (int from = 0; from < 2; ++from) {
      targets[1 - from].resize(data.size());
      const channel::MessageKey key{.communicator = 1, .sequence = round, .stream = 0};
      fabrics_[from]->postSend(1 - from, key, data.data(), data.size(), 1);
      fabrics_[1 - from]->postReceive(from, key, targets[1 - from].data(), data.size(), 1);
    }
    ASSERT_TRUE(pollUntil([&] {
      return clients_[0].sent + clients_[1].sent == before + 2 &&
             clients_[0].received + clients_[1].received == before + 2;
    }));
    EXPECT_EQ(targets[0], data);
    EXPECT_EQ(targets[1], data);
  }
  /// Until nothing is repeated any more: what changes later is the attack's doing.
  void settle() {
    std::uint64_t last = 0;
    TimePoint since = now();
    ASSERT_TRUE(pollUntil([&] {
      const std::uint64_t sent =
          fabrics_[0]->counters().datagramsSent + fabrics_[1]->counters().datagramsSent;
      if (std::exchange(last, sent) != sent) since = now();
      return now() - since > 150ms;
    }));
  }
  void awaitRejected(std::uint64_t count) {
    ASSERT_TRUE(pollUntil([&] { return fabrics_[1]->counters().datagramsRejected >= count; }))
        << fabrics_[1]->counters().datagramsRejected << " of " << count;
  }
  /// Nothing but the counter of refusals has moved.
  static void expectUnmoved(const FabricCounters& before, const FabricCounters& after) {
    EXPECT_EQ(after.datagramsSent, before.datagramsSent) << "somebody was answered";
    EXPECT_EQ(after.chunksArrived, before.chunksArrived);
    EXPECT_EQ(after.chunksDuplicate, before.chunksDuplicate);
    EXPECT_EQ(after.failovers, before.failovers);
    EXPECT_EQ(after.suspicions, before.suspicions);
    EXPECT_EQ(after.probesSent, before.probesSent);
  }

  CountingClient clients_[2];
  std::unique_ptr<Fabric> fabrics_[2];
  std::vector<std::unique_ptr<DatagramTap>> datagrams_;  // by path
  std::vector<std::unique_ptr<ConnectionTap>> connections_;
};

TEST_F(AttackTest, RealDatagramsSentAgainCutDamagedOrElsewhereChangeNothing) {
  for (std::uint32_t round = 0; round < 10; ++round) talk(round);
  settle();
  Random random(11);
  const FabricCounters before = fabrics_[1]->counters();
  std::uint64_t attacks = 0;
  for (std::size_t path = 0; path < datagrams_.size(); ++path) {
    DatagramTap& tap = *datagrams_[path];
    for (const auto& heard : std::vector(tap.heard)) {
      tap.send(heard, tap.behind());
      tap.send(heard, datagrams_[(path + 1) % datagrams_.size()]->behind());
      tap.send(std::span(heard).first(random.below(heard.size())), tap.behind());
      auto damaged = heard;
      damaged[random.below(damaged.size())] ^= static_cast<std::byte>(1 << random.below(8));
      tap.send(damaged, tap.behind());
      auto longer = heard;
      longer.push_back(std::byte{0});
      tap.send(longer, tap.behind());
      attacks += 5;
      awaitRejected(before.datagramsRejected + attacks);  // before the socket's buffer is full
    }
  }
  ASSERT_GT(attacks, 100u) << "too little was heard";
  EXPECT_EQ(fabrics_[1]->counters().datagramsRejected, before.datagramsRejected + attacks);
  expectUnmoved(before, fabrics_[1]->counters());
  talk(1000);  // and the job goes on
  EXPECT_TRUE(clients_[0].error.ok() && clients_[1].error.ok());
  EXPECT_EQ(clients_[0].failovers + clients_[1].failovers, 0);
}

TEST_F(AttackTest, AWordSentBackToItsAuthorChangesNothing) {
  talk(0);
  settle();
  const FabricCounters before = fabrics_[0]->counters();
  DatagramTap& tap = *datagrams_[0];
  std::uint64_t attacks = 0;
  for (const auto& heard : std::vector(tap.heard)) {
    tap.send(heard, fabrics_[0]->address().rails[0].control);
    ++attacks;
  }
  ASSERT_GT(attacks, 0u);
  ASSERT_TRUE(pollUntil([&] {
    return fabrics_[0]->counters().datagramsRejected == before.datagramsRejected + attacks;
  }));
  expectUnmoved(before, fabrics_[0]->counters());
}

TEST_F(AttackTest, ARecordedHelloOpensNothing) {
  talk(0);
  settle();
  for (int rail = 0; rail < kRails; ++rail) {
    ASSERT_EQ(connections_[rail]->hello.size(), sizeof(SignedHello));
    SignedHello recorded;
    std::memcpy(&recorded, connections_[rail]->hello.data(), sizeof(recorded));
    ASSERT_EQ(recorded.hello.magic, Hello::kMagic);
    // Once as it was, once for a later attempt, which would end the rail if it were believed.
    for (const std::uint32_t later : {0u, 1u}) {
      SignedHello forged = recorded;
      forged.hello.attempt += later;
      const std::uint64_t before = fabrics_[1]->counters().connectionsRejected;
      const UniqueFd socket =
          beginConnect({kLoopback, "", 0}, connections_[rail]->behind()).value();
      ASSERT_TRUE(pollUntil([&] { return transport::tcp::connectOutcome(socket.get()).ok(); }));
      ASSERT_TRUE(transport::tcp::sendAll(socket.get(), &forged, sizeof(forged), now() + 5s).ok());
      ASSERT_TRUE(
          pollUntil([&] { return fabrics_[1]->counters().connectionsRejected == before + 1; }));
    }
  }
  EXPECT_TRUE(fabrics_[1]->allRailsUp());
  EXPECT_EQ(fabrics_[1]->counters().failovers, 0u);
  talk(1);
}

/// What a liar without the key makes up: words that would end or change the job if one were
/// believed.
std::vector<std::vector<std::byte>> lies(std::uint32_t source, std::uint32_t destination,
                                         std::uint8_t path) {
  using namespace channel;
  const RailRecord failed{.rail = 0, .epoch = 1, .held = {}};
  const std::vector<std::byte> text(20, std::byte{'x'});
  const std::vector<std::pair<RecordType, std::span<const std::byte>>> words{
      {RecordType::kRailFailed, bytesOf(failed)},
      {RecordType::kRailFenced, bytesOf(failed)},
      {RecordType::kAbort, text},
      {RecordType::kNote, text}};
  std::vector<std::vector<std::byte>> lies;
  for (const auto& [type, payload] : words) {
    DatagramWriter writer;
    // It acknowledges all there is, too.
    const std::vector<RailReceipt> receipts{RailReceipt::of(1, {.base = 1000}),
                                            RailReceipt::of(1, {.base = 1000})};
    writer.begin(
        {.source = source, .destination = destination, .path = path, .control = {.base = 1000}},
        receipts);
    EXPECT_TRUE(writer.add({type, 1000, payload}));
    const auto bytes = writer.finish();
    lies.emplace_back(bytes.begin(), bytes.end());
  }
  return lies;
}

TEST_F(AttackTest, SpoofedFailuresGoodbyesAndAcknowledgementsChangeNothing) {
  talk(0);
  settle();
  auth::Authenticator stranger(auth::JobKey::random()), zero{auth::JobKey()};
  const FabricCounters before = fabrics_[1]->counters();
  std::uint64_t attacks = 0;
  for (std::size_t path = 0; path < datagrams_.size(); ++path) {
    DatagramTap& tap = *datagrams_[path];
    for (const auto& lie : lies(0, 1, static_cast<std::uint8_t>(path))) {
      tap.send(lie, tap.behind());
      for (auth::Authenticator* liar : {&stranger, &zero}) {
        auth::SealedPath sealing;
        // Numbers that are far ahead would move the window, if they were believed.
        for (int i = 0; i < 100; ++i) (void)sealing.seal(*liar, lie);
        const auth::Seal seal = sealing.seal(*liar, lie);
        auto sealed = lie;
        const auto its = std::as_bytes(std::span(&seal, 1));
        sealed.insert(sealed.end(), its.begin(), its.end());
        tap.send(sealed, tap.behind());
      }
      attacks += 3;
      awaitRejected(before.datagramsRejected + attacks);
    }
  }
  EXPECT_EQ(fabrics_[1]->counters().datagramsRejected, before.datagramsRejected + attacks);
  expectUnmoved(before, fabrics_[1]->counters());
  talk(1);
  EXPECT_TRUE(clients_[0].error.ok() && clients_[1].error.ok());
  EXPECT_EQ(clients_[0].failovers + clients_[1].failovers, 0);
}

// It is in the place of rail 1 of the peer, hears the hello, and says what it has heard.
TEST_F(AttackTest, WhoTakesARailWithoutTheKeyGetsNothingAndIsCounted) {
  connections_[1]->answerYourself();
  connections_[1]->cut();
  ASSERT_TRUE(pollUntil([&] { return fabrics_[0]->counters().connectionsRejected >= 2; }));
  EXPECT_FALSE(fabrics_[0]->allRailsUp());
  talk(0);  // over the other one
  EXPECT_TRUE(clients_[0].error.ok() && clients_[1].error.ok());
}

TEST(StrangerTest, AJobWithAnotherKeyGetsNoRail) {
  CountingClient clients[2];
  std::unique_ptr<Fabric> fabrics[2];
  std::vector<ProcessAddress> addresses;
  for (int i = 0; i < 2; ++i) {
    FabricOptions options;
    options.self = i;
    options.jobKey = auth::JobKey::random();
    options.nics.assign(1, {.device = "", .address = kLoopback});
    options.managementAddress = kLoopback;
    fabrics[i] = Fabric::create(options, clients[i]).value();
    addresses.push_back(fabrics[i]->address());
  }
  for (auto& fabric : fabrics) ASSERT_TRUE(fabric->connect(addresses).ok());
  const TimePoint deadline = now() + 20s;
  while (fabrics[1]->counters().connectionsRejected == 0 && now() < deadline) {
    for (auto& fabric : fabrics) ASSERT_TRUE(fabric->poll(1ms).ok());
  }
  EXPECT_GT(fabrics[1]->counters().connectionsRejected, 0u);
  EXPECT_FALSE(fabrics[0]->allRailsUp());
  EXPECT_FALSE(fabrics[1]->allRailsUp());
}

}  // namespace
}  // namespace faultline::fabric
