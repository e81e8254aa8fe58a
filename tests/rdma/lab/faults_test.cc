// The faults of RDMA devices in guests with rxe, by `faultline inject` as by hand, against perftest
// as it is: docs/rdma_faults.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/site/rdma_vm/guest_files.h"
#include "tests/support/perftest_fixture.h"

namespace faultline::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// Of `faultline inject` (harness/cli/cli.h).
constexpr int kExitUsage = 2;
constexpr int kExitCannotRun = 3;  // and nothing is left: that is 4
constexpr int kExitInvalid = 5;
constexpr int kExitInterrupted = 130;
constexpr const char* kFaultline = FAULTLINE_BINARY_DIR "/faultline";
constexpr const char* kLonger = "10min";  // than any case lasts: ended by hand

class RdmaFaultTest : public PerftestTest {
 protected:
  /// A fault in words: its kind, its device, how long it lasts, and parameters.
  static rdma_vm::RunRequest faultOf(const std::vector<std::string>& words) {
    std::vector<std::string> arguments{kFaultline,        "inject", words[0], "--target",
                                       "dev=" + words[1], "--for",  words[2], "--json"};
    for (std::size_t i = 3; i < words.size(); ++i) {
      arguments.insert(arguments.end(), {"--param", words[i]});
    }
    return program(std::move(arguments), kWholeCase);
  }
  /// Runs it on the client, and expects the exit code. What it reports.
  Json strike(const std::vector<std::string>& fault, int code = 0) {
    return reportOf(lab_->run(kClient, faultOf(fault)), code);
  }
  /// The same where it cannot be: why not.
  std::string refusal(const std::vector<std::string>& fault, int code = kExitCannotRun) {
    const auto output = lab_->run(kClient, faultOf(fault));
    EXPECT_TRUE(output.ok()) << output.status().message();
    if (!output.ok()) return "";
    EXPECT_EQ(output->exit.code, code) << output->exit.toString() << output->err;
    EXPECT_EQ(output->out, "");
    return output->err;
  }
  /// Begins it on the client and waits until it is there.
  int begin(const std::vector<std::string>& fault, const std::string& there) {
    auto job = lab_->start(kClient, faultOf(fault));
    EXPECT_TRUE(job.ok()) << job.status().message();
    mustRun(kClient, shell("until " + there + "; do sleep 0.1; done"));
    return job.ok() ? *job : 0;
  }
  /// Ends it before its time, as Ctrl-C does; what it reports.
  Json end(int job) {
    EXPECT_OK(lab_->end(job));
    return reportOf(lab_->finish(job), kExitInterrupted);
  }
  static Json reportOf(const Result<rdma_vm::RunOutput>& output, int code) {
    EXPECT_TRUE(output.ok()) << output.status().message();
    if (!output.ok()) return Json::object();
    EXPECT_EQ(output->exit.code, code) << output->exit.toString() << output->out << output->err;
    const Json report = Json::parse(output->out, nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(report.is_object()) << output->out << output->err;
    return report.is_object() ? report : Json::object();
  }
  static void expectProven(const Json& report) {
    EXPECT_TRUE(report.value("reverted", false)) << report.dump();
    EXPECT_TRUE(report.value(Json::json_pointer("/evidence/ok"), false)) << report.dump();
  }
  static std::string observed(const Json& report) {
    return report.value(Json::json_pointer("/evidence/observed"), std::string());
  }

  /// A whole program over the rail, from the beginning to its end. Its ends meet over the
  /// management network.
  void expectWorks(int rail) {
    std::vector<std::string> arguments{
        "ib_write_bw", "-d", rdma_vm::rdmaDeviceName(rail), "-x", "1", "-u", "17", "-F",
        "-n",          "20"};
    const auto server = lab_->start(kServer, program(arguments));
    ASSERT_TRUE(server.ok()) << server.status().message();
    mustRun(kServer, shell("until " + listens(kPerftestPort) + "; do sleep 0.1; done"));
    arguments.push_back(rdma_vm::nicAddress(kServer, 0));
    const auto client = lab_->run(kClient, program(arguments));
    const auto served = lab_->finish(*server);
    for (const auto* const output : {&client, &served}) {
      ASSERT_TRUE(output->ok()) << output->status().message();
      EXPECT_TRUE((*output)->exit.ok())
          << (*output)->exit.toString() << (*output)->out << (*output)->err;
    }
  }

  std::uint64_t roceFramesSent(int rail) const {
    return lab_->port(kClient, rail).inRoceFrames.load();
  }
  /// The client's kernel does without a module of traffic control until this ends.
  class MissingModule {
   public:
    MissingModule(RdmaFaultTest& test, std::string name) : test_(test), name_(std::move(name)) {
      test_.mustRun(kClient, program({"rmmod", name_}));
    }
    ~MissingModule() {
      const auto kernel = rdma_vm::findKernel(rdma_vm::kernelFolder());
      EXPECT_TRUE(kernel.ok()) << kernel.status().message();
      const std::string modules = kernel.ok() ? kernel->modules : "";
      test_.mustRun(kClient, program({"insmod", modules + "/kernel/net/sched/" + name_ + ".ko"}));
    }
    MissingModule(const MissingModule&) = delete;
    MissingModule& operator=(const MissingModule&) = delete;

   private:
    RdmaFaultTest& test_;
    std::string name_;
  };

  void wait(Duration time) {
    const TimePoint until = now() + time;
    while (now() < until) EXPECT_OK(lab_->poll(10ms));
  }
  /// What the switch sees of the client in that time.
  std::uint64_t sentDuring(int rail, Duration time) {
    const std::uint64_t before = sent(rail);
    wait(time);
    return sent(rail) - before;
  }
};

TEST_F(RdmaFaultTest, KnowsAProgramsQueuePairsAndWhoHasADeviceOpen) {
  // Processes of other process namespaces are not shown, and each job has one of its own here.
  const auto server = lab_->start(kServer, program({"ib_write_bw", "-d", "rxe0", "-x", "1", "-F"}));
  ASSERT_OK(server.status());
  mustRun(kServer, shell("until " + listens(kPerftestPort) + "; do sleep 0.1; done"));
  const std::string inject = std::string(kFaultline) + " inject ";
  const auto output = lab_->run(
      kClient,
      shell("ib_write_bw -d rxe0 -x 1 -F -n 100000 " + rdma_vm::nicAddress(kServer, 0) +
            " > /dev/null & until rdma resource show qp link rxe0/1 | grep -q 'RC state RTS'; "
            "do sleep 0.1; done; echo $!; " +
            inject + "--list --target pid=$! --json && " + inject +
            "rdma_link_delete --target dev=rxe0 --for 1s"));
  EXPECT_OK(lab_->end(*server));
  EXPECT_TRUE(lab_->finish(*server).ok());
  ASSERT_OK(output.status());
  EXPECT_EQ(output->exit.code, kExitCannotRun) << output->exit.toString();
  const std::size_t line = output->out.find('\n');
  ASSERT_NE(line, std::string::npos) << output->out << output->err;
  const std::string pid = output->out.substr(0, line);
  EXPECT_THAT(output->err, HasSubstr("rdma_link_delete: process " + pid + " has rxe0 open"));
  const Json told = Json::parse(output->out.substr(line), nullptr, false);
  ASSERT_TRUE(told.is_object()) << output->out << output->err;
  EXPECT_EQ(told["source"], "the kernel (RDMA netlink)");
  int connected = 0;
  for (const Json& pair : told["queue_pairs"]) {
    if (pair["type"] != "RC") continue;
    ++connected;
    EXPECT_EQ(pair["device"], "rxe0");
    EXPECT_EQ(pair["state"], "RTS");
    EXPECT_EQ(pair["shim"], false) << "it was started without";
    EXPECT_TRUE(pair["qpn"].is_number() && pair["peer_qpn"].is_number()) << pair.dump();
  }
  EXPECT_EQ(connected, 1) << output->out;
}

TEST_F(RdmaFaultTest, ASilentDropEndsItsVictimWithRetriesExceededAndNoEvent) {
  watchEvents(0);
  const Victim victim = startBusyVictim(0);
  const int fault =
      begin({"rdma_silent_drop", "rxe0", kLonger}, "tc filter show dev rail0 egress | grep -q bpf");
  // Others live, like those of address resolution.
  const std::uint64_t before = roceFramesSent(0);
  wait(1s);
  EXPECT_EQ(roceFramesSent(0), before) << "at the switch";
  expectFailure(victim, "Failed status 12");  // retries exceeded
  EXPECT_EQ(stateOf(kClient, 0).rdma, "4: ACTIVE");
  EXPECT_TRUE(stateOf(kClient, 0).carrier);
  // Only RoCE is lost.
  mustRun(kClient,
          program({"busybox", "ping", "-c", "1", "-W", "5", rdma_vm::nicAddress(kServer, 1)}));
  const Json report = end(fault);
  expectProven(report);
  EXPECT_THAT(report.value("mechanism", ""), HasSubstr("drop RoCE frames"));
  EXPECT_THAT(events(), Not(HasSubstr("PORT_ERR")));
  EXPECT_EQ(mustRun(kClient, shell("tc qdisc show dev rail0 clsact")), "");
  expectWorks(0);
}

TEST_F(RdmaFaultTest, APortThatGoesDownIsToldAndComesBackWithItsRoutes) {
  mustRun(kClient, program({"ip", "route", "add", "198.51.100.0/24", "dev", "rail1"}));
  // A victim fails at once, as there is no way to its peer. Now and then rxe itself stops for good
  // instead, with its queue pair in RTS and no error counted: then once more.
  constexpr Duration kAtOnce = 5s;
  constexpr int kMostStrikes = 8;
  bool failed = false;
  int strikes = 0;
  while (!failed) {
    ASSERT_LE(++strikes, kMostStrikes) << "no victim has failed";
    const int watch = watchEvents(1);
    const Victim victim = startBusyVictim(1);
    const int fault =
        begin({"rdma_port_down", "rxe1", kLonger}, "rdma link show rxe1/1 | grep -q DOWN");
    awaitEvent("IBV_EVENT_PORT_ERR");
    EXPECT_EQ(sentDuring(1, 1s), 0u) << "at the switch";
    EXPECT_EQ(stateOf(kServer, 1).rdma, "4: ACTIVE") << "behind a switch nobody else is told";
    failed = endsWithin(victim, kAtOnce);
    if (failed) expectFailure(victim, "Failed status 2:");  // a local operation error
    const Json report = end(fault);
    expectProven(report);
    EXPECT_THAT(observed(report), HasSubstr("port rxe1/1 is DOWN, physically DISABLED"));
    awaitEvent("IBV_EVENT_PORT_ACTIVE");
    EXPECT_THAT(mustRun(kClient, program({"ip", "route", "show", "dev", "rail1"})),
                HasSubstr("198.51.100.0/24"));
    if (failed) {
      expectWorks(1);
    } else {
      endVictim(victim);
    }
    // The connection manager may be deaf there since its victim ended (docs/rdma_faults.md).
    endJob(watch);
    mustRun(kClient, shell("rdma link delete rxe1 && rdma link add rxe1 type rxe netdev rail1"));
  }
  RecordProperty("strikes", strikes);
  mustRun(kClient, program({"ip", "route", "delete", "198.51.100.0/24"}));
}

TEST_F(RdmaFaultTest, APortComesBackWhenWhoeverTookItDownIsKilled) {
  const std::string state = "rdma link show rxe1/1 | grep -q ";
  mustRun(kClient,
          shell(std::string(kFaultline) +
                " inject rdma_port_down --target dev=rxe1 --for 120s > /run/told & until " + state +
                "DOWN; do sleep 0.1; done; kill -9 $!; until grep -q 'taken back' " +
                "/run/told; do sleep 0.1; done; " + state + "ACTIVE"));
  expectWorks(1);
}

TEST_F(RdmaFaultTest, AThrottleSlowsItsVictimAndNothingElseHappens) {
  // Few messages under way at a time, which find room in the queue: none is lost.
  const Victim victim = startBusyVictim(0, {.more = {"-t", "2"}});
  constexpr Duration kWindow = 3s;
  const std::uint64_t before = sentDuring(0, kWindow);
  const int fault = begin({"rdma_throttle", "rxe0", kLonger, "rate=1Mbit"},
                          "tc qdisc show dev rail0 root | grep -q tbf");
  wait(1s);  // what was let through at once, and what was on its way
  const std::uint64_t during = sentDuring(0, kWindow);
  EXPECT_FALSE(lab_->hasEnded(victim.client));
  const Json report = end(fault);
  const std::uint64_t after = sentDuring(0, kWindow);
  endVictim(victim);
  expectProven(report);
  EXPECT_THAT(observed(report), HasSubstr("Mbit/s left the queue"));
  EXPECT_LT(during, before / 2);
  EXPECT_GT(during, 0u);
  EXPECT_GT(after, during * 3 / 2);
  RecordProperty("bytes_before_during_after", fmt::format("{} {} {}", before, during, after));
  EXPECT_THAT(mustRun(kClient, shell("tc qdisc show dev rail0 root")), Not(HasSubstr("tbf")));
}

TEST_F(RdmaFaultTest, ADeviceThatIsDeletedIsNotFoundAndComesBack) {
  const int fault =
      begin({"rdma_link_delete", "rxe1", kLonger}, "! rdma link show rxe1/1 2>/dev/null");
  ASSERT_OK_AND_ASSIGN(const rdma_vm::RunOutput output,
                       lab_->run(kClient, program({"ib_write_bw", "-d", "rxe1", "-F",
                                                   rdma_vm::nicAddress(kServer, 0)})));
  EXPECT_NE(output.exit.code, 0);
  EXPECT_THAT(output.out + output.err, HasSubstr("rxe1 not found"));
  expectProven(end(fault));
  EXPECT_TRUE(becomesActive());
  expectWorks(1);
}

TEST_F(RdmaFaultTest, ADeviceInUseIsDeletedOnlyWhereThatIsAskedFor) {
  const Victim victim = startBusyVictim(1);
  EXPECT_THAT(refusal({"rdma_link_delete", "rxe1", "100ms"}),
              HasSubstr("a program of another process namespace"));
  EXPECT_EQ(stateOf(kClient, 1).rdma, "4: ACTIVE") << "nothing was done";
  const int fault = begin({"rdma_link_delete", "rxe1", kLonger, "users=leave"},
                          "! rdma link show rxe1/1 2>/dev/null");
  EXPECT_TRUE(movesOn(1, 256 << 10)) << "who has it open goes on, with rxe of Linux 6.1";
  endVictim(victim);
  expectProven(end(fault));
  EXPECT_TRUE(becomesActive());
}

TEST_F(RdmaFaultTest, WhatIsNotOursIsLeftAlone) {
  mustRun(kClient,
          shell("tc qdisc add dev rail0 root handle 77: tbf rate 1gbit burst 64k limit 1m; "
                "tc qdisc add dev rail1 clsact"));
  EXPECT_THAT(refusal({"rdma_throttle", "rxe0", "100ms", "rate=1Mbit"}),
              HasSubstr("not ours to replace"));
  EXPECT_THAT(mustRun(kClient, program({"tc", "qdisc", "show", "dev", "rail0", "root"})),
              HasSubstr("tbf 77:"));
  EXPECT_THAT(refusal({"rdma_silent_drop", "rxe1", "100ms"}), HasSubstr("(clsact)"));
  EXPECT_THAT(mustRun(kClient, program({"tc", "qdisc", "show", "dev", "rail1"})),
              HasSubstr("clsact"));
  mustRun(kClient, shell("tc qdisc delete dev rail0 root; tc qdisc delete dev rail1 clsact"));
}

TEST_F(RdmaFaultTest, RefusesWhatCannotBeOrWouldCutTheMachineOff) {
  EXPECT_THAT(refusal({"rdma_throttle", "rxe0", "100ms", "rate=10%"}, kExitUsage),
              HasSubstr("does not tell its rate"));
  EXPECT_THAT(
      refusal({"rdma_throttle", "rxe0", "100ms", "rate=1Mbit", "traffic_class=3"}, kExitUsage),
      HasSubstr("has no traffic classes"));
  EXPECT_THAT(refusal({"rdma_port_down", "rxe7", "100ms"}, kExitUsage),
              HasSubstr("no RDMA device 'rxe7' (did you mean"));
  mustRun(kClient, program({"ip", "route", "add", "default", "dev", "rail0", "metric", "900"}));
  for (const char* const kind : {"rdma_port_down", "rdma_throttle"}) {
    std::vector<std::string> fault{kind, "rxe0", "100ms"};
    if (std::string(kind) == "rdma_throttle") fault.push_back("rate=1Mbit");
    EXPECT_THAT(refusal(fault), HasSubstr("carries a default route"));
  }
  mustRun(kClient, program({"ip", "route", "delete", "default", "dev", "rail0"}));
}

TEST_F(RdmaFaultTest, WithoutPacketsThatComeTheirLossLeavesNoEvidence) {
  const Json report = strike({"rdma_silent_drop", "rxe1", "300ms", "direction=in"}, kExitInvalid);
  EXPECT_THAT(observed(report), HasSubstr("0 have arrived at the interface"));
  EXPECT_TRUE(report.value("reverted", false));
}

TEST_F(RdmaFaultTest, WithoutTheTokenBucketAShaperThrottles) {
  const MissingModule missing(*this, "sch_tbf");
  const Victim victim = startBusyVictim(0, {.more = {"-t", "2"}});
  const int fault = begin({"rdma_throttle", "rxe0", kLonger, "rate=1Mbit"},
                          "tc qdisc show dev rail0 root | grep -q htb");
  wait(3s);
  EXPECT_FALSE(lab_->hasEnded(victim.client));
  const Json report = end(fault);
  endVictim(victim);
  expectProven(report);
  EXPECT_THAT(report.value("mechanism", ""), HasSubstr("htb"));
  EXPECT_THAT(observed(report), HasSubstr("Mbit/s left the queue"));
  EXPECT_THAT(mustRun(kClient, shell("tc qdisc show dev rail0 root")), Not(HasSubstr("htb")));
}

TEST_F(RdmaFaultTest, WithoutTheFilterAQueueDropsWhatGoesOutAndTheRestIsRefused) {
  const MissingModule missing(*this, "cls_bpf");
  EXPECT_THAT(refusal({"rdma_silent_drop", "rxe0", "100ms"}),
              HasSubstr("load the modules sch_ingress and cls_bpf"));
  EXPECT_EQ(mustRun(kClient, shell("tc qdisc show dev rail0 clsact")), "");
  const Json report = strike({"rdma_silent_drop", "rxe0", "300ms", "direction=out", "frames=all"});
  expectProven(report);
  EXPECT_THAT(report.value("mechanism", ""), HasSubstr("blackhole"));
}

}  // namespace
}  // namespace faultline::test
