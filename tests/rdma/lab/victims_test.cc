// Programs of others over real verbs, untouched, and what they see of faults: docs/rdma_lab.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/units.h"
#include "tests/support/laboratory_fixture.h"

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

class Victims : public LaboratoryTest {
 protected:
  /// Both ends of a perftest program, of which the client is to be looked at.
  struct Pair {
    int server = 0;
    int client = 0;
  };
  /// They meet over the management network, which no fault strikes. -x 1 is the address of RoCE v2
  /// over IPv4, -u 17 waits 0.5 s for an answer: on a busy machine it comes late.
  Pair startPerftest(const std::string& name, int rail, int iterations, int size) {
    return startPair({name, "-d", rdma_vm::rdmaDeviceName(rail), "-x", "1", "-u", "17", "-F", "-n",
                      std::to_string(iterations), "-s", std::to_string(size)},
                     rdma_vm::nicAddress(kServer, 0), listens(kPerftestPort));
  }
  /// They meet over the rail itself, through the RDMA connection manager. Only so can perftest be
  /// told how often to try again; else it is 7 times, which rxe takes as without end.
  Pair startMortalPerftest(const std::string& name, int rail, int size) {
    return startPair(
        {name, "-R", "--retry_count=2", "-F", "-n", "100000", "-s", std::to_string(size)},
        rdma_vm::nicAddress(kServer, rail + 1), listensForRdma(kPerftestPort));
  }
  Pair startPair(std::vector<std::string> arguments, const std::string& address,
                 const std::string& there) {
    Pair pair;
    auto server = lab_->start(kServer, program(arguments));
    EXPECT_TRUE(server.ok()) << server.status().message();
    mustRun(kServer, shell("until " + there + "; do sleep 0.1; done"));
    arguments.push_back(address);
    auto client = lab_->start(kClient, program(arguments));
    EXPECT_TRUE(client.ok()) << client.status().message();
    pair.server = server.ok() ? *server : 0;
    pair.client = client.ok() ? *client : 0;
    return pair;
  }

  std::uint64_t sent(int host, int rail) const { return lab_->port(host, rail).inBytes.load(); }
  /// Waits until the host has sent so many bytes more over its rail: the program is in full swing.
  bool movesOn(int host, int rail, std::uint64_t bytes) {
    const std::uint64_t before = sent(host, rail);
    return pollUntil(kBudget, [&] {
      EXPECT_OK(lab_->poll(1ms));
      return sent(host, rail) >= before + bytes;
    });
  }

  /// What a program that should have moved has said, and how it ended: it is ended now.
  std::string outputOf(int job) {
    (void)lab_->end(job);
    const auto output = lab_->finish(job);
    if (!output.ok()) return output.status().message();
    return output->exit.toString() + "\n" + output->out + output->err;
  }

  /// Runs ibv_asyncwatch in the background of a host, until the case ends.
  void watchEvents(int host, int rail) {
    mustRun(host, program({"rm", "-f", "/run/events"}));
    auto job = lab_->start(host, shell("exec stdbuf -oL ibv_asyncwatch -d " +
                                           rdma_vm::rdmaDeviceName(rail) + " > /run/events",
                                       kWholeCase));
    ASSERT_TRUE(job.ok()) << job.status().message();
    watch_ = *job;
    mustRun(host, shell("until [ -s /run/events ]; do sleep 0.1; done"));
  }
  /// Waits for the event.
  void awaitEvent(int host, const std::string& event) {
    SCOPED_TRACE(event);
    mustRun(host, shell("until grep -q " + event + " /run/events; do sleep 0.1; done"));
  }
  void TearDown() override {
    if (watch_ != 0) {
      EXPECT_OK(lab_->end(watch_));
      EXPECT_TRUE(lab_->finish(watch_).ok());
    }
    LaboratoryTest::TearDown();
  }

  int watch_ = 0;
};

TEST_F(Victims, WriteBandwidthRunsUntouchedAndOverItsRailAlone) {
  constexpr int kIterations = 100;
  constexpr int kSize = 64 << 10;
  const std::uint64_t before = sent(kClient, 1);
  const std::uint64_t others = sent(kClient, 0);
  const Pair pair = startPerftest("ib_write_bw", 1, kIterations, kSize);
  for (const int job : {pair.client, pair.server}) {
    ASSERT_OK_AND_ASSIGN(const rdma_vm::RunOutput output, lab_->finish(job));
    EXPECT_TRUE(output.exit.ok()) << output.exit.toString() << output.out << output.err;
    EXPECT_THAT(output.out, HasSubstr("65536      100"));
  }
  constexpr std::uint64_t kPayload = std::uint64_t{kIterations} * kSize;
  EXPECT_GE(sent(kClient, 1) - before, kPayload);
  EXPECT_LT(sent(kClient, 0) - others, kPayload / 100);
}

TEST_F(Victims, SendLatencyRunsUntouched) {
  const Pair pair = startPerftest("ib_send_lat", 0, 200, 64);
  for (const int job : {pair.client, pair.server}) {
    ASSERT_OK_AND_ASSIGN(const rdma_vm::RunOutput output, lab_->finish(job));
    EXPECT_TRUE(output.exit.ok()) << output.exit.toString() << output.out << output.err;
  }
}

TEST_F(Victims, RpingRunsUntouched) {
  const std::string address = rdma_vm::nicAddress(kServer, 1);
  ASSERT_OK_AND_ASSIGN(const int server,
                       lab_->start(kServer, program({"rping", "-s", "-a", address, "-C", "10"})));
  // It listens in the RDMA connection manager, which no list of sockets shows: try again.
  const std::string out =
      mustRun(kClient, shell("until rping -c -v -a " + address + " -C 10; do sleep 0.3; done"));
  EXPECT_THAT(out, HasSubstr("ping data: rdma-ping-9"));
  ASSERT_OK_AND_ASSIGN(const rdma_vm::RunOutput output, lab_->finish(server));
  EXPECT_TRUE(output.exit.ok()) << output.exit.toString() << output.err;
}

TEST_F(Victims, APortThatIsSwitchedOffInTheGuestIsTold) {
  watchEvents(kClient, 0);
  mustRun(kClient, program({"ip", "link", "set", "rail0", "down"}));
  awaitEvent(kClient, "IBV_EVENT_PORT_ERR");
  const rdma_vm::RailState down = stateOf(kClient, 0);
  EXPECT_EQ(down.rdma, "1: DOWN");
  EXPECT_EQ(down.physical, "3: Disabled");
  EXPECT_EQ(stateOf(kClient, 1).rdma, "4: ACTIVE") << "the other rail";
  EXPECT_EQ(stateOf(kServer, 0).rdma, "4: ACTIVE") << "behind a switch nobody else is told";
  EXPECT_THAT(mustRun(kClient, program({"rdma", "link", "show", "rxe0/1"})),
              HasSubstr("state DOWN physical_state DISABLED"));
  mustRun(kClient, program({"ip", "link", "set", "rail0", "up"}));
  awaitEvent(kClient, "IBV_EVENT_PORT_ACTIVE");
}

TEST_F(Victims, ACableThatIsPulledOutsideIsTold) {
  watchEvents(kClient, 1);
  ASSERT_OK(lab_->setCable(kClient, 1, false));
  awaitEvent(kClient, "IBV_EVENT_PORT_ERR");
  const rdma_vm::RailState pulled = stateOf(kClient, 1);
  EXPECT_FALSE(pulled.carrier);
  EXPECT_EQ(pulled.rdma, "1: DOWN");
  EXPECT_EQ(pulled.physical, "2: Polling");
  EXPECT_THAT(mustRun(kClient, program({"ip", "link", "show", "rail1"})), HasSubstr("NO-CARRIER"));
  EXPECT_EQ(stateOf(kServer, 1).rdma, "4: ACTIVE") << "behind a switch nobody else is told";
  ASSERT_OK(lab_->setCable(kClient, 1, true));
  awaitEvent(kClient, "IBV_EVENT_PORT_ACTIVE");
}

TEST_F(Victims, ACableThatIsPulledForGoodEndsAProgramWithRetryExceeded) {
  const Pair pair = startMortalPerftest("ib_write_bw", 1, 64 << 10);
  ASSERT_TRUE(movesOn(kClient, 1, 1 << 20)) << outputOf(pair.client);
  ASSERT_OK(lab_->setCable(kClient, 1, false));
  const auto client = lab_->finish(pair.client);
  ASSERT_OK(lab_->setCable(kClient, 1, true));
  EXPECT_OK(lab_->end(pair.server));  // it may wait for ever
  EXPECT_TRUE(lab_->finish(pair.server).ok());
  ASSERT_TRUE(client.ok()) << client.status().message();
  EXPECT_FALSE(client->timedOut);
  EXPECT_NE(client->exit.code, 0);
  EXPECT_THAT(client->out + client->err, HasSubstr("Failed status 12"));
}

/// Whatever drops everything with the carrier up: nothing is told, and the transport gives up.
class SilentDrop : public Victims {
 protected:
  template <typename Break, typename Repair>
  void endsWithRetryExceeded(const std::string& name, int size, std::uint64_t swing,
                             const Break& breakIt, const Repair& repair) {
    watchEvents(kClient, 0);
    const Pair pair = startMortalPerftest(name, 0, size);
    ASSERT_TRUE(movesOn(kClient, 0, swing)) << outputOf(pair.client);
    breakIt();
    const auto client = lab_->finish(pair.client);
    const rdma_vm::RailState state = stateOf(kClient, 0);
    const std::string events = mustRun(kClient, program({"cat", "/run/events"}));
    repair();
    // Its own peer may wait for ever: it is asked to end.
    EXPECT_OK(lab_->end(pair.server));
    EXPECT_TRUE(lab_->finish(pair.server).ok());
    ASSERT_TRUE(client.ok()) << client.status().message();
    EXPECT_FALSE(client->timedOut) << client->out << client->err;
    EXPECT_NE(client->exit.code, 0);
    EXPECT_THAT(client->out + client->err, HasSubstr("Failed status 12"));
    EXPECT_EQ(state.rdma, "4: ACTIVE");
    EXPECT_TRUE(state.carrier);
    EXPECT_THAT(events, ::testing::Not(HasSubstr("PORT_ERR")));
  }
};

TEST_F(SilentDrop, AtTheSwitchEndsWriteBandwidth) {
  const std::uint64_t dropped = lab_->port(kClient, 0).dropped.load();
  endsWithRetryExceeded(
      "ib_write_bw", 64 << 10, 1 << 20, [&] { lab_->setBlocked(kClient, 0, true); },
      [&] { lab_->setBlocked(kClient, 0, false); });
  EXPECT_GT(lab_->port(kClient, 0).dropped.load(), dropped);
}

TEST_F(SilentDrop, ByNetemInTheGuestEndsSendLatency) {
  endsWithRetryExceeded(
      "ib_send_lat", 64, 4 << 10,
      [&] {
        mustRun(kClient, program({"tc", "qdisc", "replace", "dev", "rail0", "root", "netem", "loss",
                                  "100%"}));
      },
      [&] {
        mustRun(kClient, program({"tc", "qdisc", "delete", "dev", "rail0", "root"}));
      });
}

TEST_F(Victims, ADeviceThatIsDeletedIsGoneForNewProgramsAndCanBeMadeAgain) {
  mustRun(kClient, program({"rdma", "link", "delete", "rxe1"}));
  EXPECT_EQ(stateOf(kClient, 1).rdma, "missing");
  ASSERT_OK_AND_ASSIGN(const rdma_vm::RunOutput output,
                       lab_->run(kClient, program({"ib_write_bw", "-d", "rxe1", "-F",
                                                   rdma_vm::nicAddress(kServer, 0)})));
  EXPECT_NE(output.exit.code, 0);
  EXPECT_THAT(output.out + output.err, HasSubstr("rxe1 not found"));
  mustRun(kClient, program({"rdma", "link", "add", "rxe1", "type", "rxe", "netdev", "rail1"}));
}

}  // namespace
}  // namespace faultline::test
