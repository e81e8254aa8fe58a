#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "harness/launch/privileges.h"
#include "harness/site/rdma_vm/laboratory.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

namespace faultline::test {

/// The soft-RoCE laboratory of a test program, booted when the first case needs it and used by all:
/// each leaves it as it found it.
class SharedLaboratory {
 public:
  /// Says why there can be none ("SKIPPED: ", which ctest looks for), once; null then. Everything
  /// that fails after that is a failure.
  static rdma_vm::Laboratory* get() {
    static const std::unique_ptr<rdma_vm::Laboratory> laboratory = boot();
    return laboratory.get();
  }

  /// Whether this machine can have one, with all the programs that the tests run in it.
  static Status possible() {
    RETURN_IF_ERROR(rdma_vm::laboratoryPossible());
    for (const char* const program :
         {"ib_write_bw", "ib_send_lat", "rping", "ibv_asyncwatch", "rdma", "ip", "tc", "stdbuf"}) {
      RETURN_IF_ERROR(rdma_vm::findOnPath(program).status());
    }
    return launch::enterPrivileges().status();
  }

 private:
  static std::unique_ptr<rdma_vm::Laboratory> boot() {
    if (const Status status = possible(); !status.ok()) {
      std::printf("SKIPPED: %s\n", status.message().c_str());
      return nullptr;
    }
    auto files = rdma_vm::Laboratory::findFiles();
    if (files.ok()) files->program = FAULTLINE_BINARY_DIR "/faultline";
    auto laboratory = files.ok() ? rdma_vm::Laboratory::boot({}, *files)
                                 : Result<std::unique_ptr<rdma_vm::Laboratory>>(files.status());
    EXPECT_TRUE(laboratory.ok()) << laboratory.status().message();
    return laboratory.ok() ? std::move(*laboratory) : nullptr;
  }
};

/// Base of the cases. Two hosts with two rails; every port is active before and after each.
class LaboratoryTest : public ::testing::Test {
 protected:
  static constexpr int kServer = 0;
  static constexpr int kClient = 1;
  // Emulation on a busy machine takes its time.
  static constexpr Duration kProgramLimit = 90s;
  static constexpr Duration kWholeCase = 10min;  // of what runs until its case ends it
  static constexpr Duration kBudget = 60s;

  void SetUp() override {
    lab_ = SharedLaboratory::get();
    if (lab_ == nullptr) GTEST_SKIP() << "there is no laboratory";
    ASSERT_TRUE(becomesActive());
  }
  void TearDown() override {
    if (lab_ == nullptr) return;
    EXPECT_TRUE(becomesActive()) << "the case left something broken";
  }

  /// Whether all rails of all hosts are, or become, active.
  bool becomesActive() {
    return pollUntil(kBudget, [this] {
      for (int host = 0; host < lab_->spec().hosts; ++host) {
        for (const wire::RailState& rail : statesOf(host)) {
          if (rail.rdma != "4: ACTIVE" || !rail.carrier) return false;
        }
      }
      return true;
    });
  }
  std::vector<wire::RailState> statesOf(int host) {
    auto states = lab_->railStates(host);
    EXPECT_TRUE(states.ok()) << states.status().message();
    return states.ok() ? *states
                       : std::vector<wire::RailState>(static_cast<std::size_t>(lab_->spec().rails));
  }
  wire::RailState stateOf(int host, int rail) {
    return statesOf(host)[static_cast<std::size_t>(rail)];
  }

  static rdma_vm::RunRequest program(std::vector<std::string> arguments,
                                     Duration limit = kProgramLimit) {
    rdma_vm::RunRequest request;
    request.arguments = std::move(arguments);
    request.limit = limit;
    return request;
  }
  static rdma_vm::RunRequest shell(const std::string& text, Duration limit = kProgramLimit) {
    return program({"sh", "-c", text}, limit);
  }
  /// Runs it in the guest, and expects that it ends well.
  std::string mustRun(int host, const rdma_vm::RunRequest& request) {
    const auto output = lab_->run(host, request);
    const std::string command = ::testing::PrintToString(request.arguments);
    EXPECT_TRUE(output.ok()) << command << ' ' << output.status().message();
    if (!output.ok()) return "";
    EXPECT_TRUE(output->exit.ok() && !output->timedOut)
        << command << ' ' << output->exit.toString() << '\n'
        << output->out << output->err;
    return output->out;
  }
  /// For a shell in a guest: whether somebody listens at this TCP port. (`ss` says so in half a
  /// second there.)
  static std::string listens(int port) {
    return fmt::format("grep -q ':{:04X} 0*:0000 0A' /proc/net/tcp /proc/net/tcp6", port);
  }

  /// The same of the RDMA connection manager. Who is bound there may not listen yet, which is a
  /// refusal for who comes then.
  static std::string listensForRdma(int port) {
    return fmt::format("rdma resource show cm_id | grep -q 'state LISTEN.*:{}'", port);
  }

  /// Where perftest's servers listen unless they are told otherwise.
  static constexpr int kPerftestPort = 18515;
  rdma_vm::Laboratory* lab_ = nullptr;
};

}  // namespace faultline::test
