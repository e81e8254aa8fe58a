// Faults from outside of guests, without guests: what the laboratory says is what a test tells it
// to. With guests: tests/rdma/lab.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/site/rdma_vm/laboratory_faults.h"
#include "harness/site/rdma_vm/rail_line.h"

namespace faultline::rdma_vm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ScriptedRails final : public RailLine {
 public:
  Status setCable(int host, int rail, bool plugged) override {
    EXPECT_EQ(host, kHost);
    EXPECT_EQ(rail, kRail);
    told.push_back(plugged ? "plug" : "pull");
    return std::exchange(refusal, {});
  }
  void setBlocked(int /*host*/, int /*rail*/, bool blocked) override {
    told.push_back(blocked ? "block" : "open");
  }
  const SwitchPort& port(int /*host*/, int /*rail*/) const override { return port_; }
  Result<std::vector<wire::RailState>> railStates(int host) override {
    RETURN_IF_ERROR(trouble);
    return *toldRails(host);
  }
  Status askForRails(int /*host*/) override { return okStatus(); }
  std::optional<std::vector<wire::RailState>> toldRails(int /*host*/) const override {
    const wire::RailState whole{.carrier = true, .rdma = "4: ACTIVE", .physical = "5: LinkUp"};
    return std::vector(kRail + 1, whole);
  }
  Status listen(Duration /*timeout*/) override { return okStatus(); }

  static constexpr int kHost = 1;
  static constexpr int kRail = 0;
  std::vector<std::string> told;
  Status refusal;  ///< of the next cable
  Status trouble;  ///< of asking for the rails

 private:
  SwitchPort port_{};
};

class RailFaultTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(pull_.apply().ok()); }

  const Status given_up_ = errorf(Code::kAborted, "nobody waits for it any more");
  ScriptedRails rails_;
  CablePull pull_{"port_down", rails_, ScriptedRails::kHost, ScriptedRails::kRail};
};

TEST_F(RailFaultTest, IsTakenBackOnce) {
  EXPECT_TRUE(pull_.revert().ok());
  EXPECT_TRUE(pull_.revert().ok());
  EXPECT_THAT(rails_.told, ElementsAre("pull", "plug"));
}

TEST_F(RailFaultTest, OfHostsThatAreGivenUpHasNothingToTakeBack) {
  rails_.refusal = given_up_;
  EXPECT_TRUE(pull_.revert().ok());
  EXPECT_TRUE(pull_.revert().ok());
  EXPECT_THAT(rails_.told, ElementsAre("pull", "plug"));
}

TEST_F(RailFaultTest, WhoseCableIsPluggedIsNotAwaitedWhenHostsAreGivenUp) {
  rails_.trouble = given_up_;
  EXPECT_TRUE(pull_.revert().ok());
}

TEST_F(RailFaultTest, ThatCannotBeTakenBackSaysSoAndTriesAgain) {
  rails_.refusal = errorf(Code::kUnavailable, "qemu has ended");
  const Status refused = pull_.revert();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("qemu has ended"));
  EXPECT_TRUE(pull_.revert().ok());
  EXPECT_THAT(rails_.told, ElementsAre("pull", "plug", "plug"));
}

TEST_F(RailFaultTest, OfAHostThatIsGoneSaysSo) {
  rails_.trouble = errorf(Code::kUnavailable, "host 1 has ended");
  EXPECT_THAT(pull_.revert().message(), HasSubstr("host 1 has ended"));
}

}  // namespace
}  // namespace faultline::rdma_vm
