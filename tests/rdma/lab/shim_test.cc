// libfaultline-verbs.so (injector/verbs) under programs of others over real verbs: they fail with
// what was injected, and are as fast as ever when nothing is. Skipped where the shim is not built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/laboratory_fixture.h"

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

/// $NAME, or the file of this build.
std::string fileOr(const char* name, const char* file) {
  const char* const given = std::getenv(name);
  return given == nullptr ? std::string(FAULTLINE_BINARY_DIR) + "/" + file : given;
}

class ShimmedVictims : public LaboratoryTest {
 protected:
  void SetUp() override {
    shim_ = fileOr("FAULTLINE_VERBS_SHIM", "injector/verbs/shim/libfaultline-verbs.so");
    faultline_ = fileOr("FAULTLINE_INJECT", "faultline");
    if (::access(shim_.c_str(), R_OK) != 0) GTEST_SKIP() << "there is no " << shim_;
    LaboratoryTest::SetUp();
  }

  static std::vector<std::string> writeBandwidth(int rail, int iterations) {
    return {"ib_write_bw",
            "-d",
            rdma_vm::rdmaDeviceName(rail),
            "-x",
            "1",
            "-u",
            "17",
            "-F",
            "-p",
            std::to_string(kPort + rail),
            "-s",
            "65536",
            "-n",
            std::to_string(iterations)};
  }
  int startServer(int rail, int iterations) {
    const auto job = lab_->start(kServer, program(writeBandwidth(rail, iterations)));
    EXPECT_TRUE(job.ok()) << job.status().message();
    mustRun(kServer, shell("until ss -ltnH | grep -q :" + std::to_string(kPort + rail) +
                           "; do sleep 0.1; done"));
    return job.ok() ? *job : 0;
  }
  rdma_vm::RunRequest client(int rail, int iterations) {
    std::vector<std::string> arguments = writeBandwidth(rail, iterations);
    arguments.push_back(rdma_vm::nicAddress(kServer, 0));
    return program(std::move(arguments));
  }
  /// The average bandwidth of the table's only row; 0 without one.
  static double bandwidthOf(const std::string& out) {
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream row(line);
      double size = 0, iterations = 0, peak = 0, average = 0;
      if (row >> size >> iterations >> peak >> average && size == 65536) return average;
    }
    return 0;
  }

  /// A client with the shim, into which a fault is put when it is in full swing; all in one job,
  /// so that they see each other's process numbers.
  std::string injectInto(const std::string& fault) {
    const int server = startServer(0, 100'000);
    std::string command;
    for (const std::string& word : client(0, 100'000).arguments) command += word + " ";
    const std::string sent = "$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts)";
    const auto output =
        lab_->run(kClient, shell("before=" + sent + "; LD_PRELOAD=" + shim_ + " " + command +
                                 "> /run/victim 2>&1 & victim=$!; until [ " + sent +
                                 " -gt $((before + 200)) ]; do sleep 0.1; done; " + faultline_ +
                                 " inject " + fault +
                                 " --target pid=$victim --for 2s; "
                                 "echo inject ended with $?; wait $victim; "
                                 "echo victim ended with $?; cat /run/victim"));
    EXPECT_OK(lab_->end(server));
    EXPECT_TRUE(lab_->finish(server).ok());
    EXPECT_TRUE(output.ok()) << output.status().message();
    if (!output.ok()) return "";
    EXPECT_FALSE(output->timedOut) << output->out << output->err;
    return output->out + output->err;
  }

  static constexpr int kPort = 18515;
  std::string shim_;
  std::string faultline_;
};

TEST_F(ShimmedVictims, ACompletionThatIsRewrittenIsTheStatusThatTheProgramFailsWith) {
  const std::string told = injectInto(
      "completion_rewrite --param status=rnr_retry_exc_err --param after_operations=10 "
      "--param budget=1");
  EXPECT_THAT(told, HasSubstr("inject ended with 0"));
  EXPECT_THAT(told, HasSubstr("Failed status 13"));
  EXPECT_THAT(told, HasSubstr("victim ended with 1"));
}

TEST_F(ShimmedVictims, AQueuePairThatGoesToErrorFlushesItsWork) {
  const std::string told = injectInto("qp_error");
  EXPECT_THAT(told, HasSubstr("inject ended with 0"));
  EXPECT_THAT(told, HasSubstr("Failed status 5"));
  EXPECT_THAT(told, HasSubstr("victim ended with 1"));
}

TEST_F(ShimmedVictims, ArmedWithNothingItIsAsFastAsWithout) {
  constexpr int kIterations = 300;
  constexpr const char* kLoaded = "the shim is loaded";
  // Both at the same time, so that the machine's other load is the same for both; once on each
  // rail.
  double logarithms = 0;
  for (const int shimmed : {0, 1}) {
    std::vector<int> servers, clients;
    for (const int rail : {0, 1}) servers.push_back(startServer(rail, kIterations));
    for (const int rail : {0, 1}) {
      rdma_vm::RunRequest request = client(rail, kIterations);
      if (rail == shimmed) {
        // The same process first looks whether the loader takes the library, which it leaves out
        // with no more than a message if it cannot.
        std::string command = "grep -q libfaultline-verbs.so /proc/self/maps && echo " +
                              std::string(kLoaded) + " >&2; exec";
        for (const std::string& word : request.arguments) command += " " + word;
        request = shell(command);
        request.environment["LD_PRELOAD"] = shim_;
      }
      ASSERT_OK_AND_ASSIGN(clients.emplace_back(), lab_->start(kClient, request));
    }
    std::array<double, 2> bandwidth{};
    for (const int rail : {0, 1}) {
      ASSERT_OK_AND_ASSIGN(const rdma_vm::RunOutput output,
                           lab_->finish(clients[static_cast<std::size_t>(rail)]));
      EXPECT_TRUE(output.exit.ok()) << output.exit.toString() << output.out << output.err;
      if (rail == shimmed) {
        EXPECT_THAT(output.err, HasSubstr(kLoaded));
      }
      bandwidth[static_cast<std::size_t>(rail)] = bandwidthOf(output.out);
      ASSERT_GT(bandwidth[static_cast<std::size_t>(rail)], 0) << output.out;
      EXPECT_TRUE(lab_->finish(servers[static_cast<std::size_t>(rail)]).ok());
    }
    logarithms += std::log(bandwidth[static_cast<std::size_t>(shimmed)] /
                           bandwidth[static_cast<std::size_t>(1 - shimmed)]);
  }
  const double ratio = std::exp(logarithms / 2);
  RecordProperty("bandwidth_with_over_without", std::to_string(ratio));
  std::printf("bandwidth with the shim over bandwidth without: %.2f\n", ratio);
  // Emulation is noisy; nanoseconds are measured by its benchmark. This is that nothing is broken.
  EXPECT_GT(ratio, 0.6);
}

}  // namespace
}  // namespace faultline::test
