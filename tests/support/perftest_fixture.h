#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/laboratory_fixture.h"

namespace faultline::test {

/// A program of perftest.
struct PerftestSpec {
  std::string name = "ib_write_bw";
  int size = 16 << 10;
  std::vector<std::string> more{};  ///< arguments
  /// So many bytes on the wire, and it is in full swing.
  std::uint64_t swing = 256 << 10;
};

/// Base of the cases with perftest as the victim of a fault: programs that are not ours, untouched.
class PerftestTest : public LaboratoryTest {
 protected:
  /// Both ends of a program, of which the client is to be looked at. They end with the case, if
  /// nothing has ended them before.
  struct Victim {
    int server = 0;
    int client = 0;
  };

  /// Starts the server, waits for it as `there` says, and starts the client that meets it at
  /// `address`.
  Victim startPair(std::vector<std::string> arguments, const std::string& address,
                   const std::string& there, Duration limit = kProgramLimit) {
    Victim pair;
    auto server = lab_->start(kServer, program(arguments, limit));
    EXPECT_TRUE(server.ok()) << server.status().message();
    mustRun(kServer, shell("until " + there + "; do sleep 0.1; done"));
    arguments.push_back(address);
    auto client = lab_->start(kClient, program(arguments, limit));
    EXPECT_TRUE(client.ok()) << client.status().message();
    pair.server = server.ok() ? *server : 0;
    pair.client = client.ok() ? *client : 0;
    untilTheEnd_.insert(untilTheEnd_.end(), {pair.client, pair.server});
    return pair;
  }

  /// One in full swing, without end for a test's purposes. Its ends meet over the rail itself,
  /// through the RDMA connection manager: only so can perftest be told how often to try again. Else
  /// it is 7 times, which rxe takes as without end.
  ///
  /// Beside busy processes it may not get there. perftest connects twice, and its client's second
  /// call can come before its server listens again: it is refused (RDMA_CM_EVENT_REJECTED, 8), and
  /// dies of it (newer versions call ten times, within a second). Or its two retries are over, or
  /// rxe stands still. Then once more, and what there was to see is told. How often that happens is
  /// a matter of the machine's load, so that time is the limit and not a number of starts.
  Victim startBusyVictim(int rail, const PerftestSpec& spec = {}) {
    std::vector<std::string> arguments{
        spec.name, "-R", "--retry_count=2", "-F", "-s", std::to_string(spec.size), "-n", "100000"};
    arguments.insert(arguments.end(), spec.more.begin(), spec.more.end());
    const TimePoint last = now() + kStarts;
    for (int start = 1; start == 1 || now() < last; ++start) {
      const std::uint64_t before = sent(rail);
      const Victim victim = startPair(arguments, rdma_vm::nicAddress(kServer, rail + 1),
                                      listensForRdma(kPerftestPort), kWholeCase);
      const auto inFullSwing = [&] { return sent(rail) >= before + spec.swing; };
      const auto hasEnded = [&] { return lab_->hasEnded(victim.client); };
      (void)comes(kStart, [&] { return inFullSwing() || hasEnded(); });
      if (inFullSwing() && !hasEnded()) return victim;
      const auto look =
          shell("rdma resource show qp; rdma resource show cm_id; rdma statistic show");
      const std::string client = mustRun(kClient, look);
      const std::string server = mustRun(kServer, look);
      std::printf("victim %d does not get into full swing: %s%sits server:\n%s\n", start,
                  endVictim(victim).c_str(), client.c_str(), server.c_str());
    }
    ADD_FAILURE() << "no victim gets into full swing";
    return {};
  }

  /// Waits for the client's end, which is to be a failure that says this.
  void expectFailure(const Victim& victim, const std::string& message) {
    EXPECT_TRUE(endsWithin(victim, kProgramLimit));
    EXPECT_OK(lab_->end(victim.client));
    const auto client = lab_->finish(victim.client);
    endJob(victim.server);  // it may wait for ever
    ASSERT_TRUE(client.ok()) << client.status().message();
    EXPECT_NE(client->exit.code, 0);
    EXPECT_THAT(client->out + client->err, ::testing::HasSubstr(message));
  }
  bool endsWithin(const Victim& victim, Duration time) {
    return comes(time, [&] { return lab_->hasEnded(victim.client); });
  }
  /// How it ended and what it printed. It may wait for ever, so it is ended.
  std::string endJob(int job) {
    EXPECT_OK(lab_->end(job));
    const auto output = lab_->finish(job);
    EXPECT_TRUE(output.ok()) << output.status().message();
    return output.ok() ? output->exit.toString() + '\n' + output->out + output->err : "";
  }
  std::string endVictim(const Victim& victim) {
    const std::string client = endJob(victim.client);
    return client + "its server: " + endJob(victim.server);
  }

  /// Waits for the condition; false when it does not hold within this time, or a host is gone.
  template <typename Condition>
  bool comes(Duration time, Condition condition) {
    Status alive;
    const bool came = pollUntil(time, [&] {
      alive = lab_->poll(1ms);
      return !alive.ok() || condition();
    });
    EXPECT_OK(alive);
    return came && alive.ok();
  }

  /// What the switch has had from the client over its rail, in bytes.
  std::uint64_t sent(int rail) const { return lab_->port(kClient, rail).inBytes.load(); }
  /// Waits until it has had so many more.
  bool movesOn(int rail, std::uint64_t bytes) {
    const std::uint64_t before = sent(rail);
    return comes(kBudget, [&] { return sent(rail) >= before + bytes; });
  }

  /// Runs ibv_asyncwatch in the background of the client, until the case ends; the job, for who
  /// ends it before.
  int watchEvents(int rail) {
    mustRun(kClient, program({"rm", "-f", "/run/events"}));
    auto job = lab_->start(kClient, shell("exec stdbuf -oL ibv_asyncwatch -d " +
                                              rdma_vm::rdmaDeviceName(rail) + " > /run/events",
                                          kWholeCase));
    EXPECT_TRUE(job.ok()) << job.status().message();
    if (!job.ok()) return 0;
    untilTheEnd_.push_back(*job);
    mustRun(kClient, shell("until [ -s /run/events ]; do sleep 0.1; done"));
    return *job;
  }
  /// Waits until the event has been told.
  void awaitEvent(const std::string& event) {
    SCOPED_TRACE(event);
    mustRun(kClient, shell("until grep -q " + event + " /run/events; do sleep 0.1; done"));
  }
  std::string events() { return mustRun(kClient, program({"cat", "/run/events"})); }

  void TearDown() override {
    // Also after a failure in the middle: a server that is left would answer the next case.
    for (const int job : untilTheEnd_) {
      if (!lab_->end(job).ok()) continue;  // it was finished
      EXPECT_TRUE(lab_->finish(job).ok());
    }
    LaboratoryTest::TearDown();
  }

  static constexpr Duration kStart = 30s;   // of a victim, until it is in full swing
  static constexpr Duration kStarts = 90s;  // for one that does
  std::vector<int> untilTheEnd_;            // jobs that end with the case
};

}  // namespace faultline::test
