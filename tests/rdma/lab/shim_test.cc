// libfaultline-verbs.so (injector/verbs) under programs of others over real verbs: they fail with
// what was injected, and are as fast as ever when nothing is. Only where the shim is built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "harness/site/rdma_vm/laboratory_faults.h"
#include "injector/faults/registry.h"
#include "tests/support/laboratory_fixture.h"

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

/// $NAME, or the file of this build.
std::string fileOr(const char* name, const char* file) {
  const char* const given = std::getenv(name);
  return given == nullptr ? file : given;
}

class ShimmedVictims : public LaboratoryTest {
 protected:
  void SetUp() override {
    shim_ = fileOr("FAULTLINE_VERBS_SHIM", FAULTLINE_VERBS_SHIM);
    faultline_ = fileOr("FAULTLINE_INJECT", FAULTLINE_BINARY_DIR "/faultline");
    ASSERT_EQ(::access(shim_.c_str(), R_OK), 0) << "there is no " << shim_;
    LaboratoryTest::SetUp();
  }

  /// A program of others, both ends of it.
  struct Pair {
    std::vector<std::string> server;
    std::vector<std::string> client;
    std::string listens;  ///< for a shell: whether the server is there
    int rail = 0;
  };
  /// They meet over the management network.
  static Pair perftest(const std::string& name, int rail, std::vector<std::string> more) {
    const int port = kPerftestPort + nextPort_++;
    Pair pair;
    pair.rail = rail;
    pair.server = {name, "-d", rdma_vm::rdmaDeviceName(rail), "-x", "1", "-u", "17",
                   "-F", "-p", std::to_string(port)};
    pair.server.insert(pair.server.end(), more.begin(), more.end());
    pair.client = pair.server;
    pair.client.push_back(rdma_vm::nicAddress(kServer, 0));
    pair.listens = listens(port);
    return pair;
  }
  /// They meet through the RDMA connection manager, and go on without end.
  static Pair rping(int rail) {
    const std::string address = rdma_vm::nicAddress(kServer, rail + 1);
    return {
        {"rping", "-s", "-a", address}, {"rping", "-c", "-a", address}, listensForRdma(7174), rail};
  }
  static Pair writeBandwidth(int rail, int iterations) {
    return perftest("ib_write_bw", rail, {"-s", "65536", "-n", std::to_string(iterations)});
  }

  int startServer(const Pair& pair) {
    const auto job = lab_->start(kServer, program(pair.server));
    EXPECT_TRUE(job.ok()) << job.status().message();
    mustRun(kServer, shell("until " + pair.listens + "; do sleep 0.1; done"));
    return job.ok() ? *job : 0;
  }
  /// The average bandwidth of the table's only row, in MiB/s; 0 without one.
  static double bandwidthOf(const std::string& out, double size = 65536) {
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream row(line);
      double bytes = 0, iterations = 0, peak = 0, average = 0;
      if (row >> bytes >> iterations >> peak >> average && bytes == size) return average;
    }
    return 0;
  }

  /// There and back, by the shortest time of ib_send_lat's only row, in 1/us; 0 without one.
  static double fastestOf(const std::string& out) {
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream row(line);
      double bytes = 0, iterations = 0, shortest = 0, longest = 0;
      if (row >> bytes >> iterations >> shortest >> longest) return 1 / shortest;
    }
    return 0;
  }

  /// A client with the shim, and what is done to it as soon as its queue pair is connected: a shell
  /// where $victim is its process, and $told a file. All in one job, so that they see each other's
  /// process numbers. Then everything that was said.
  rdma_vm::RunRequest victimOf(const Pair& pair, const std::string& done) const {
    std::string command;
    for (const std::string& word : pair.client) command += word + " ";
    const std::string device = rdma_vm::rdmaDeviceName(pair.rail);
    return shell("out=$(mktemp) told=$(mktemp); LD_PRELOAD=" + shim_ + " " + command +
                 "> $out 2>&1 & victim=$!; until rdma resource show qp link " + device +
                 "/1 | grep 'state RTS' | grep -q \"pid $victim \"; do sleep 0.1; done; " + done +
                 "wait $victim; echo victim ended with $?; cat $out $told");
  }
  /// A program with the shim and without a fault. It says kLoaded among its errors: the same
  /// process first looks whether the loader takes the library, which it leaves out with no more
  /// than a message if it cannot.
  static constexpr const char* kLoaded = "the shim is loaded";
  rdma_vm::RunRequest withShim(const std::vector<std::string>& words) const {
    std::string command = "grep -q libfaultline-verbs.so /proc/self/maps && echo " +
                          std::string(kLoaded) + " >&2; exec";
    for (const std::string& word : words) command += " '" + word + "'";
    rdma_vm::RunRequest request = shell(command);
    request.environment["LD_PRELOAD"] = shim_;
    return request;
  }
  /// Speeds of a program without the shim and with it.
  struct Turns {
    std::vector<double> without;
    std::vector<double> with;
  };
  /// Runs it without and with the shim in turns, so that what else the machine does meets both.
  /// `speed` finds its speed in what it prints.
  Turns inTurns(const char* name, const std::function<Pair()>& pair,
                double (*speed)(const std::string& out)) {
    Turns speeds;
    for (const bool shimmed : {false, true, true, false}) {
      const Pair both = pair();
      const int server = startServer(both);
      const auto output =
          lab_->run(kClient, shimmed ? withShim(both.client) : program(both.client));
      endServer(server);
      EXPECT_TRUE(output.ok()) << output.status().message();
      if (!output.ok()) continue;
      EXPECT_TRUE(output->exit.ok()) << output->exit.toString() << output->out << output->err;
      if (shimmed) {
        EXPECT_THAT(output->err, HasSubstr(kLoaded));
      }
      const double found = speed(output->out);
      EXPECT_GT(found, 0) << output->out;
      std::printf("%s %s the shim: speed %g\n", name, shimmed ? "with" : "without", found);
      (shimmed ? speeds.with : speeds.without).push_back(found);
    }
    return speeds;
  }
  std::string inject(const std::string& fault, const std::string& duration) const {
    return faultline_ + " inject " + fault + " --target pid=$victim --for " + duration;
  }

  /// A fault in a program that it ends, and with it the fault: what was said about it.
  std::string injectInto(const Pair& pair, const std::string& fault) {
    const int server = startServer(pair);
    const std::string told = wordsOf(lab_->run(
        kClient,
        victimOf(pair, inject(fault, "60s") + " > $told 2>&1; echo inject ended with $?; ")));
    endServer(server);
    return told;
  }
  /// A fault that is armed before the first message: until then the rail carries nothing.
  std::string injectFromTheStart(const Pair& pair, const std::string& fault) {
    // The queue pair asks for its peer's address before it is connected.
    mustRun(kClient, program({"busybox", "ping", "-c", "1", "-W", "9",
                              rdma_vm::nicAddress(kServer, pair.rail + 1)}));
    const int server = startServer(pair);
    lab_->setBlocked(kClient, pair.rail, true);
    mustRun(kClient, program({"rm", "-f", "/run/armed"}));
    const auto client =
        lab_->start(kClient, victimOf(pair, inject(fault, "60s") +
                                                " > $told 2>&1 & inject=$!; until grep -q ^inject: "
                                                "$told; do sleep 0.1; done; touch /run/armed; wait "
                                                "$inject; echo inject ended with $?; "));
    mustRun(kClient, shell("until [ -e /run/armed ]; do sleep 0.1; done"));
    lab_->setBlocked(kClient, pair.rail, false);
    EXPECT_TRUE(client.ok()) << client.status().message();
    const std::string told = client.ok() ? wordsOf(lab_->finish(*client)) : "";
    endServer(server);
    return told;
  }
  static std::string wordsOf(const Result<rdma_vm::RunOutput>& output) {
    EXPECT_TRUE(output.ok()) << output.status().message();
    if (!output.ok()) return "";
    EXPECT_FALSE(output->timedOut) << output->out << output->err;
    return output->out + output->err;
  }
  void endServer(int server) {
    EXPECT_OK(lab_->end(server));  // it may wait for ever
    EXPECT_TRUE(lab_->finish(server).ok());
  }

  /// What is said of ib_send_lat, which is given `more` options: some of its completions, after
  /// the first ones, come a second late.
  std::string delayLatencies(const std::vector<std::string>& more) {
    std::vector<std::string> options{"-n", "60", "-U"};
    options.insert(options.end(), more.begin(), more.end());
    std::string told = injectFromTheStart(
        perftest("ib_send_lat", 1, options),
        "qp_delay --param delay=1s --param side=recv --param after_operations=20 --param budget=" +
            std::to_string(kDelayed));
    EXPECT_THAT(told, HasSubstr("victim ended with 0"));
    EXPECT_THAT(told, HasSubstr("inject ended with 0"));
    EXPECT_THAT(told, HasSubstr("3 of 60 completions were delivered late, by 1"));
    return told;
  }

  static constexpr int kDelayed = 3;
  /// Nanoseconds are measured by its benchmark. This is that nothing is broken.
  static constexpr double kStillFast = 0.6;
  static inline int nextPort_ = 0;
  std::string shim_;
  std::string faultline_;
};

constexpr const char* kOnce = " --param after_operations=10 --param budget=1";

TEST_F(ShimmedVictims, ACompletionThatIsRewrittenIsTheStatusThatEachProgramFailsWith) {
  struct Case {
    Pair pair;
    const char* fault;
    const char* told;
  };
  const std::array cases{
      Case{writeBandwidth(0, 100'000), "completion_rewrite --param status=rnr_retry_exc_err",
           "Failed status 13"},
      Case{perftest("ib_send_lat", 1, {"-n", "100000"}),
           "completion_rewrite --param status=rem_access_err --param side=both",
           "Failed status 10"},
      Case{rping(1), "completion_rewrite --param status=rem_op_err",
           "cq completion failed status 11"}};
  for (const Case& each : cases) {
    const std::string told = injectInto(each.pair, std::string(each.fault) + kOnce);
    EXPECT_THAT(told, HasSubstr(each.told));
    EXPECT_THAT(told, HasSubstr("inject ended with 0"));
    EXPECT_THAT(told, HasSubstr("evidence (completions that became errors): 1 of "));
    EXPECT_THAT(told, ::testing::Not(HasSubstr("victim ended with 0")));
  }
}

TEST_F(ShimmedVictims, AQueuePairThatGoesToErrorFlushesItsWork) {
  const std::string told = injectInto(writeBandwidth(0, 100'000), "qp_error");
  EXPECT_THAT(told, HasSubstr("Failed status 5"));
  EXPECT_THAT(told, HasSubstr("inject ended with 0"));
  EXPECT_THAT(told, HasSubstr("1 queue pairs were put in error and read back as ERR"));
  EXPECT_THAT(told, HasSubstr("victim ended with 1\n"));
}

TEST_F(ShimmedVictims, APostThatFailsEndsItsProgram) {
  const std::string told =
      injectInto(writeBandwidth(1, 100'000), std::string("post_error --param errno=EIO") + kOnce);
  EXPECT_THAT(told, HasSubstr("Couldn't post send"));
  EXPECT_THAT(told, HasSubstr("inject ended with 0"));
  EXPECT_THAT(told, HasSubstr("evidence (posts that failed): 1 of "));
  EXPECT_THAT(told, HasSubstr("victim ended with 1\n"));
}

TEST_F(ShimmedVictims, ACompletionThatIsLostMakesItsProgramWaitForEver) {
  const Pair pair = perftest("ib_send_lat", 0, {"-n", "100000"});
  const int server = startServer(pair);
  const std::string sent = "$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts)";
  // It hangs when nothing has been sent for several looks in a row.
  const auto client = lab_->run(
      kClient,
      victimOf(pair, inject(std::string("completion_loss --param side=recv") + kOnce, "60s") +
                         " > $told 2>&1 & inject=$!; until grep -q ^inject: $told; do sleep 0.1; "
                         "done; still=0; until [ $still = 4 ]; do last=" +
                         sent + "; sleep 1; if [ $last = " + sent +
                         " ]; then still=$((still + 1)); else still=0; fi; done; kill -0 $victim "
                         "&& echo the victim hangs; kill $victim; wait $inject; echo inject ended "
                         "with $?; "));
  const std::string told = wordsOf(client);
  endServer(server);
  EXPECT_THAT(told, HasSubstr("the victim hangs"));
  EXPECT_THAT(told, HasSubstr("victim ended with 143"));
  EXPECT_THAT(told, HasSubstr("inject ended with 0"));
  EXPECT_THAT(told, HasSubstr("evidence (completions that were swallowed): 1 of "));
}

TEST_F(ShimmedVictims, LatencyGrowsByTheDelayOfCompletions) {
  const std::string told = delayLatencies({});
  // It tells half of each time there and back, in us; the first has waited for the rail.
  std::vector<double> halves;
  std::istringstream lines(told);
  for (std::string line; std::getline(lines, line);) {
    int number = 0;
    char comma = 0;
    double half = 0;
    std::istringstream row(line);
    if (row >> number >> comma >> half && comma == ',' && number > 1) halves.push_back(half);
  }
  ASSERT_GE(halves.size(), 50u) << told;
  std::ranges::sort(halves, std::greater<>());
  constexpr double kHalfDelay = 500'000;
  EXPECT_GE(halves[kDelayed - 1], kHalfDelay) << told;
  EXPECT_LT(halves[halves.size() / 2], kHalfDelay / 2) << "the others were not delayed";
}

// An event whose completion is held makes ib_send_lat send its next message, as if that had come,
// so that its times stay as they are. But it ends with all of its completions only, and for those
// that were held there is no event but the shim's: without that it would sleep for ever.
TEST_F(ShimmedVictims, AProgramThatSleepsUntilAnEventIsWokenForWhatWasHeld) {
  EXPECT_THAT(delayLatencies({"-e"}), HasSubstr("Test with events"));
}

TEST_F(ShimmedVictims, BandwidthIsNotAboveTheRateOfCompletions) {
  constexpr int kSize = 8192;
  constexpr int kMessages = 24;
  constexpr int kAtOnce = 4;
  const std::string told =
      injectFromTheStart(perftest("ib_write_bw", 0,
                                  {"-s", std::to_string(kSize), "-n", std::to_string(kMessages),
                                   "-t", std::to_string(kAtOnce), "-Q", "1"}),
                         "qp_rate --param rate=1Mbit");
  EXPECT_THAT(told, HasSubstr("victim ended with 0"));
  EXPECT_THAT(told, HasSubstr("inject ended with 0"));
  EXPECT_THAT(told, HasSubstr("Mbit/s for 1Mbit requested, measured over"));
  constexpr double kRate = 1e6 / 8 / (1 << 20);  // MiB/s, as perftest tells it
  const double bandwidth = bandwidthOf(told, kSize);
  EXPECT_GT(bandwidth, 0) << told;
  // Those that are on their way at the end are not waited for.
  EXPECT_LT(bandwidth, kRate * kMessages / (kMessages - kAtOnce) * 1.2) << told;
}

// As ranks are told in scenarios.
TEST_F(ShimmedVictims, AFaultOfProgramsThatWereStartedWithAVariableLeavesOthersAlone) {
  constexpr int kStruck = 1;
  std::vector<int> servers, clients;
  for (const int number : {0, kStruck}) {
    const Pair pair = writeBandwidth(/*rail=*/number, 100'000);
    servers.push_back(startServer(pair));
    rdma_vm::RunRequest request = withShim(pair.client);
    request.environment["NUMBER"] = std::to_string(number);
    ASSERT_OK_AND_ASSIGN(clients.emplace_back(), lab_->start(kClient, request));
  }
  mustRun(kClient, shell("until [ $(rdma resource show qp | grep 'type RC' | grep -c 'state RTS') "
                         "= 2 ]; do sleep 0.1; done"));
  const auto parameters =
      injector::FaultParameters::parse(*injector::findFaultKind("qp_error"), {});
  ASSERT_TRUE(parameters.ok()) << parameters.status().message();
  ASSERT_OK_AND_ASSIGN(const auto fault, rdma_vm::makeLaboratoryFault(
                                             "qp_error", *parameters, *lab_, kClient,
                                             /*rail=*/0, "NUMBER=" + std::to_string(kStruck)));
  EXPECT_OK(fault->prepare());
  EXPECT_OK(fault->apply());
  ASSERT_OK_AND_ASSIGN(const injector::Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok);
  EXPECT_THAT(evidence.observed, HasSubstr("1 queue pairs were put in error"));
  EXPECT_OK(fault->revert());
  EXPECT_THAT(wordsOf(lab_->finish(clients[kStruck])), HasSubstr("Failed status 5"));
  const rdma_vm::SwitchPort& port = lab_->port(kClient, /*rail=*/0);
  constexpr std::uint64_t kMore = 1 << 20;
  const std::uint64_t before = port.inBytes.load();
  EXPECT_TRUE(pollUntil(kBudget, [&] {
    EXPECT_OK(lab_->poll(1ms));
    return port.inBytes.load() >= before + kMore;
  })) << "the other one does not go on";
  EXPECT_OK(lab_->end(clients[0]));
  EXPECT_TRUE(lab_->finish(clients[0]).ok());
  for (const int server : servers) endServer(server);
}

TEST_F(ShimmedVictims, ArmedWithNothingItIsAsFastAsWithout) {
  // The fastest of all times there and back: what the machine is busy with besides only ever makes
  // one slower, and some meet nothing.
  const Turns speeds = inTurns(
      "ib_send_lat",
      [] {
        return perftest("ib_send_lat", 0, {"-n", "400"});
      },
      fastestOf);
  const double ratio = std::ranges::max(speeds.with) / std::ranges::max(speeds.without);
  RecordProperty("speed_with_over_without", std::to_string(ratio));
  std::printf("speed with the shim over speed without: %.2f\n", ratio);
  EXPECT_GT(ratio, kStillFast);
}

// How fast these are is not judged: without the shim, too, they differ by half from run to run, and
// to know by how much takes a minute.
TEST_F(ShimmedVictims, ArmedWithNothingTheOthersEndWell) {
  Pair ping = rping(0);
  ping.client.insert(ping.client.end(), {"-C", "100"});
  for (const Pair& pair : {writeBandwidth(0, 300), ping}) {
    const int server = startServer(pair);
    ASSERT_OK_AND_ASSIGN(const rdma_vm::RunOutput output,
                         lab_->run(kClient, withShim(pair.client)));
    endServer(server);
    EXPECT_TRUE(output.exit.ok()) << output.exit.toString() << output.out << output.err;
    EXPECT_THAT(output.err, HasSubstr(kLoaded));
  }
}

}  // namespace
}  // namespace faultline::test
