// Programs of others over real verbs, untouched, and what they see of faults: docs/rdma_lab.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/support/perftest_fixture.h"

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

class Victims : public PerftestTest {
 protected:
  /// They meet over the management network, which no fault strikes. -x 1 is the address of RoCE v2
  /// over IPv4, -u 17 waits 0.5 s for an answer: on a busy machine it comes late.
  Victim startPerftest(const std::string& name, int rail, int iterations, int size) {
    return startPair({name, "-d", rdma_vm::rdmaDeviceName(rail), "-x", "1", "-u", "17", "-F", "-n",
                      std::to_string(iterations), "-s", std::to_string(size)},
                     rdma_vm::nicAddress(kServer, 0), listens(kPerftestPort));
  }
};

TEST_F(Victims, WriteBandwidthRunsUntouchedAndOverItsRailAlone) {
  constexpr int kIterations = 100;
  constexpr int kSize = 64 << 10;
  const std::uint64_t before = sent(1);
  const std::uint64_t others = sent(0);
  const Victim pair = startPerftest("ib_write_bw", 1, kIterations, kSize);
  for (const int job : {pair.client, pair.server}) {
    ASSERT_OK_AND_ASSIGN(const rdma_vm::RunOutput output, lab_->finish(job));
    EXPECT_TRUE(output.exit.ok()) << output.exit.toString() << output.out << output.err;
    EXPECT_THAT(output.out, HasSubstr("65536      100"));
  }
  constexpr std::uint64_t kPayload = std::uint64_t{kIterations} * kSize;
  EXPECT_GE(sent(1) - before, kPayload);
  EXPECT_LT(sent(0) - others, kPayload / 100);
}

TEST_F(Victims, SendLatencyRunsUntouched) {
  const Victim pair = startPerftest("ib_send_lat", 0, 200, 64);
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
  watchEvents(0);
  mustRun(kClient, program({"ip", "link", "set", "rail0", "down"}));
  awaitEvent("IBV_EVENT_PORT_ERR");
  const wire::RailState down = stateOf(kClient, 0);
  EXPECT_EQ(down.rdma, "1: DOWN");
  EXPECT_EQ(down.physical, "3: Disabled");
  EXPECT_EQ(stateOf(kClient, 1).rdma, "4: ACTIVE") << "the other rail";
  EXPECT_EQ(stateOf(kServer, 0).rdma, "4: ACTIVE") << "behind a switch nobody else is told";
  EXPECT_THAT(mustRun(kClient, program({"rdma", "link", "show", "rxe0/1"})),
              HasSubstr("state DOWN physical_state DISABLED"));
  mustRun(kClient, program({"ip", "link", "set", "rail0", "up"}));
  awaitEvent("IBV_EVENT_PORT_ACTIVE");
}

TEST_F(Victims, ACableThatIsPulledOutsideIsTold) {
  watchEvents(1);
  ASSERT_OK(lab_->setCable(kClient, 1, false));
  awaitEvent("IBV_EVENT_PORT_ERR");
  const wire::RailState pulled = stateOf(kClient, 1);
  EXPECT_FALSE(pulled.carrier);
  EXPECT_EQ(pulled.rdma, "1: DOWN");
  EXPECT_EQ(pulled.physical, "2: Polling");
  EXPECT_THAT(mustRun(kClient, program({"ip", "link", "show", "rail1"})), HasSubstr("NO-CARRIER"));
  EXPECT_EQ(stateOf(kServer, 1).rdma, "4: ACTIVE") << "behind a switch nobody else is told";
  ASSERT_OK(lab_->setCable(kClient, 1, true));
  awaitEvent("IBV_EVENT_PORT_ACTIVE");
}

TEST_F(Victims, ACableThatIsPulledForGoodEndsAProgramWithRetryExceeded) {
  const Victim victim = startBusyVictim(1, {.size = 64 << 10, .swing = 1 << 20});
  if (HasFailure()) return;
  ASSERT_OK(lab_->setCable(kClient, 1, false));
  expectFailure(victim, "Failed status 12");
  ASSERT_OK(lab_->setCable(kClient, 1, true));
}

/// Whatever drops everything with the carrier up: nothing is told, and the transport gives up.
class SilentDrop : public Victims {
 protected:
  template <typename Break, typename Repair>
  void endsWithRetryExceeded(const PerftestSpec& spec, const Break& breakIt, const Repair& repair) {
    watchEvents(0);
    const Victim victim = startBusyVictim(0, spec);
    if (HasFailure()) return;
    breakIt();
    expectFailure(victim, "Failed status 12");
    const wire::RailState state = stateOf(kClient, 0);
    const std::string told = events();
    repair();
    EXPECT_EQ(state.rdma, "4: ACTIVE");
    EXPECT_TRUE(state.carrier);
    EXPECT_THAT(told, ::testing::Not(HasSubstr("PORT_ERR")));
  }
};

TEST_F(SilentDrop, AtTheSwitchEndsWriteBandwidth) {
  const std::uint64_t dropped = lab_->port(kClient, 0).dropped.load();
  endsWithRetryExceeded(
      {.size = 64 << 10, .swing = 1 << 20}, [&] { lab_->setBlocked(kClient, 0, true); },
      [&] { lab_->setBlocked(kClient, 0, false); });
  EXPECT_GT(lab_->port(kClient, 0).dropped.load(), dropped);
}

TEST_F(SilentDrop, ByNetemInTheGuestEndsSendLatency) {
  endsWithRetryExceeded(
      {.name = "ib_send_lat", .size = 64, .swing = 4 << 10},
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
