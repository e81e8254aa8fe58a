#include "injector/rdma/steering_drop.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/unit/rdma/fake_adapter.h"

namespace faultline::rdma {
namespace {

using test::FakeAdapter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr SteeringWays kOut{.out = true, .in = false};
constexpr SteeringWays kIn{.out = false, .in = true};
constexpr SteeringWays kBoth{.out = true, .in = true};

class SteeringDropTest : public ::testing::Test {
 protected:
  SteeringDropTest() { drop_.emplace(adapter_.calls(), "mlx5_1"); }
  ~SteeringDropTest() override {
    drop_.reset();
    EXPECT_EQ(adapter_.alive(), 0u);
    EXPECT_EQ(adapter_.lists, 0);
  }
  Status prepareWith(int error, int call, SteeringWays ways = kBoth) {
    adapter_.error = error;
    adapter_.fail_at = call;
    return drop_->prepare(ways);
  }

  FakeAdapter adapter_;
  std::optional<SteeringDrop> drop_;
};

TEST_F(SteeringDropTest, WhatIsSentIsDroppedByTheRuleItself) {
  ASSERT_TRUE(drop_->prepare(kOut).ok());
  EXPECT_THAT(adapter_.log, ElementsAre("+context", "+matcher")) << "no rule yet";
  ASSERT_TRUE(drop_->install().ok());
  EXPECT_THAT(adapter_.matched_tables, ElementsAre(MLX5DV_FLOW_TABLE_TYPE_RDMA_TX));
  EXPECT_EQ(adapter_.alive("rule"), 1u);
  EXPECT_EQ(adapter_.alive("table"), 0u);
}

TEST_F(SteeringDropTest, WhatIsReceivedIsLedToATableThatDrops) {
  adapter_.levels = 200;
  ASSERT_TRUE(drop_->prepare(kIn).ok());
  ASSERT_TRUE(drop_->install().ok());
  EXPECT_THAT(adapter_.matched_tables, ElementsAre(MLX5DV_FLOW_TABLE_TYPE_RDMA_RX));
  EXPECT_THAT(adapter_.log,
              ElementsAre("+context", "+table", "+group", "+entry", "+matcher", "+rule"));
  EXPECT_THAT(adapter_.commands,
              ElementsAre(askFlowTableCapabilities(), createReceiveTable(199),
                          createGroup(FakeAdapter::kTableNumber),
                          createDropEntry(FakeAdapter::kTableNumber, FakeAdapter::kGroupNumber)));
}

TEST_F(SteeringDropTest, RemovingTakesTheRulesAndEndingTheRest) {
  ASSERT_TRUE(drop_->prepare(kBoth).ok());
  ASSERT_TRUE(drop_->install().ok());
  EXPECT_EQ(adapter_.alive("rule"), 2u);
  const std::size_t rest = adapter_.alive() - 2;
  adapter_.log.clear();
  ASSERT_TRUE(drop_->remove().ok());
  EXPECT_THAT(adapter_.log, ElementsAre("-rule", "-rule"));
  EXPECT_TRUE(drop_->remove().ok()) << "there is nothing any more";
  ASSERT_TRUE(drop_->install().ok()) << "it can strike again";
  EXPECT_EQ(adapter_.alive("rule"), 2u);
  ASSERT_TRUE(drop_->remove().ok());
  EXPECT_EQ(adapter_.alive(), rest);
  adapter_.log.clear();
  drop_.reset();
  EXPECT_THAT(adapter_.log,
              ElementsAre("-matcher", "-entry", "-group", "-table", "-matcher", "-context"));
  EXPECT_EQ(adapter_.swept, 0);
}

TEST_F(SteeringDropTest, EndingTakesTheRulesFirst) {
  ASSERT_TRUE(drop_->prepare(kIn).ok());
  ASSERT_TRUE(drop_->install().ok());
  adapter_.log.clear();
  drop_.reset();
  EXPECT_THAT(adapter_.log,
              ElementsAre("-rule", "-matcher", "-entry", "-group", "-table", "-context"));
  EXPECT_EQ(adapter_.swept, 0);
}

// Every call that can fail fails once, for each direction.
TEST(SteeringDropFailuresTest, NothingIsLeftBehind) {
  for (const auto& [ways, calls] : {std::pair{kOut, 5}, std::pair{kIn, 8}, std::pair{kBoth, 10}}) {
    int failed_in_install = 0;
    int call = 1;
    for (bool ended = false; !ended; ++call) {
      SCOPED_TRACE("call " + std::to_string(call) + " of " + std::to_string(calls));
      FakeAdapter adapter;
      adapter.fail_at = call;
      {
        SteeringDrop drop(adapter.calls(), "mlx5_1");
        if (const Status status = drop.prepare(ways); !status.ok()) {
          EXPECT_THAT(status.message(), HasSubstr("steering rule of mlx5_1"));
          EXPECT_EQ(adapter.alive(), 0u);
          EXPECT_EQ(adapter.lists, 0);
        } else if (!drop.install().ok()) {
          ++failed_in_install;
          EXPECT_EQ(adapter.alive("rule"), 0u) << "half a fault";
          EXPECT_EQ(adapter.alive("context"), 1u);
        } else {
          ended = true;
        }
        EXPECT_EQ(adapter.calls_that_can_fail, ended ? calls : call) << "it stops at once";
      }
      EXPECT_EQ(adapter.alive(), 0u);
      EXPECT_EQ(adapter.lists, 0);
      EXPECT_EQ(adapter.swept, 0) << "left for the kernel to take back";
    }
    EXPECT_EQ(call - 2, calls) << "calls that failed";
    EXPECT_EQ(failed_in_install, ways.out && ways.in ? 2 : 1);
  }
}

TEST_F(SteeringDropTest, ARuleThatDoesNotGoIsAnErrorThatCanBeTriedAgain) {
  ASSERT_TRUE(drop_->prepare(kBoth).ok());
  ASSERT_TRUE(drop_->install().ok());
  adapter_.stuck = {"rule"};
  const Status status = drop_->remove();
  EXPECT_EQ(status.code(), Code::kNotRestored);
  EXPECT_THAT(status.message(), HasSubstr("take back the rule in RDMA_RX"));
  EXPECT_EQ(adapter_.alive("rule"), 2u);
  adapter_.stuck.clear();
  EXPECT_TRUE(drop_->remove().ok());
  EXPECT_EQ(adapter_.alive("rule"), 0u);
}

TEST_F(SteeringDropTest, WhatDoesNotGoByItselfGoesWithTheContext) {
  for (const std::string kind : {"rule", "matcher", "entry", "group", "table"}) {
    SCOPED_TRACE(kind);
    FakeAdapter adapter;
    {
      SteeringDrop drop(adapter.calls(), "mlx5_1");
      ASSERT_TRUE(drop.prepare(kIn).ok());
      ASSERT_TRUE(drop.install().ok());
      adapter.stuck = {kind};
    }
    EXPECT_EQ(adapter.log.back(), "-context");
    EXPECT_GT(adapter.swept, 0);
    EXPECT_EQ(adapter.alive(), 0u);
  }
}

TEST_F(SteeringDropTest, AHalfOfAFaultThatDoesNotGoIsToldOf) {
  ASSERT_TRUE(drop_->prepare(kBoth).ok());
  adapter_.fail_at = adapter_.calls_that_can_fail + 2;  // the second rule
  adapter_.stuck = {"rule"};
  const Status status = drop_->install();
  EXPECT_EQ(status.code(), Code::kNotRestored);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("put the rule into RDMA_RX"),
                                      HasSubstr("take back the rule in RDMA_TX")));
  adapter_.stuck.clear();
  EXPECT_TRUE(drop_->remove().ok());
  EXPECT_EQ(adapter_.alive("rule"), 0u);
}

TEST_F(SteeringDropTest, WithoutTheRightItSaysWhichIsMissing) {
  ASSERT_TRUE(drop_->prepare(kOut).ok());
  adapter_.error = EPERM;
  adapter_.fail_at = adapter_.calls_that_can_fail + 1;
  const Status status = drop_->install();
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("mlx5_1"), HasSubstr("RDMA_TX"), HasSubstr("CAP_NET_RAW")));
}

TEST_F(SteeringDropTest, ADeviceThatMayNotBeOpened) {
  const Status status = prepareWith(EACCES, 2);
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("/dev/infiniband/uverbs"));
}

TEST_F(SteeringDropTest, WhatIsTooOldIsUnsupported) {
  for (const int error : {EOPNOTSUPP, EPROTONOSUPPORT, ENOTTY, EINVAL}) {
    FakeAdapter adapter;
    adapter.error = error;
    adapter.fail_at = 4;
    const Status status = SteeringDrop(adapter.calls(), "mlx5_1").prepare(kOut);
    EXPECT_EQ(status.code(), Code::kUnsupported) << error;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("too old"), HasSubstr("SR-IOV"),
                                        Not(HasSubstr("firmware: status"))));
  }
}

TEST_F(SteeringDropTest, WhatTheFirmwareSaysIsShown) {
  adapter_.firmware_status = 0x03;
  adapter_.firmware_syndrome = 0x6b8c4a;
  const Status status = prepareWith(EREMOTEIO, 5, kIn);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("table's group"), HasSubstr("status 0x03"),
                                      HasSubstr("syndrome 0x006b8c4a"), Not(HasSubstr("too old"))));
}

TEST_F(SteeringDropTest, AFirmwareThatDoesNotKnowTheCommandIsTooOld) {
  adapter_.firmware_status = 0x02;
  const Status status = prepareWith(EREMOTEIO, 3);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("status 0x02"), HasSubstr("too old")));
}

TEST_F(SteeringDropTest, TablesThatAreNotThereAreNotAskedFor) {
  adapter_.has_receive_tables = false;
  for (const SteeringWays ways : {kIn, kBoth}) {
    const Status status = drop_->prepare(ways);
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("'direction: out'"));
    EXPECT_EQ(adapter_.alive(), 0u);
  }
  EXPECT_TRUE(drop_->prepare(kOut).ok());
}

TEST_F(SteeringDropTest, WithoutATableForWhatIsSentOnlyTheOtherWayIsPossible) {
  adapter_.has_transmit_tables = false;
  EXPECT_THAT(drop_->prepare(kOut).message(), HasSubstr("'direction: in'"));
  adapter_.levels = 0;
  EXPECT_THAT(drop_->prepare(kIn).message(), HasSubstr("neither sent nor received"));
  adapter_.levels = 1;
  EXPECT_TRUE(drop_->prepare(kIn).ok());
}

TEST_F(SteeringDropTest, DevicesAreFoundByTheirNames) {
  const Status status = SteeringDrop(adapter_.calls(), "mlx5_2").prepare(kOut);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("mlx5_2"), HasSubstr("mlx5_0")));
  adapter_.is_mlx5 = false;
  EXPECT_EQ(drop_->prepare(kOut).code(), Code::kUnsupported);
  EXPECT_THAT(adapter_.log, IsEmpty());
}

TEST(SteeringCallsTest, LibrariesThatAreMissingAreNamedWithTheirPackages) {
  const auto refusal = [](const SteeringLibraries& libraries) {
    const Status status = loadSteeringCalls(libraries).status();
    EXPECT_EQ(status.code(), Code::kUnsupported);
    return status.message();
  };
  EXPECT_THAT(refusal({.verbs = "libnowhere.so.1"}),
              AllOf(HasSubstr("libnowhere.so.1"), HasSubstr("install libibverbs1")));
  if (::dlopen("libibverbs.so.1", RTLD_NOW) == nullptr) GTEST_SKIP() << "no libibverbs here";
  EXPECT_THAT(refusal({.mlx5 = "libnowhere.so.1"}),
              AllOf(HasSubstr("libnowhere.so.1"), HasSubstr("install ibverbs-providers")));
  EXPECT_THAT(refusal({.mlx5 = "libc.so.6"}),
              AllOf(HasSubstr("libc.so.6 does not have"), HasSubstr("mlx5dv_")));
}

TEST(SteeringCallsTest, TheRealLibrariesHaveThemAll) {
  for (const char* const library : {"libibverbs.so.1", "libmlx5.so.1"}) {
    if (::dlopen(library, RTLD_NOW) == nullptr) GTEST_SKIP() << "there is no " << library;
  }
  const auto calls = loadSteeringCalls();
  ASSERT_TRUE(calls.ok()) << calls.status().message();
  EXPECT_TRUE(calls->get_device_list && calls->free_device_list && calls->get_device_name &&
              calls->is_supported && calls->open_device && calls->close_device);
  EXPECT_TRUE(calls->devx_general_cmd && calls->devx_obj_create && calls->devx_obj_destroy);
  EXPECT_TRUE(calls->create_flow_matcher && calls->destroy_flow_matcher && calls->create_flow &&
              calls->destroy_flow);
  // As far as one gets without an adapter: libibverbs lists what there is.
  const Status status = SteeringDrop(*calls, "nobodys_name").prepare(kBoth);
  EXPECT_THAT(status.code(), ::testing::AnyOf(Code::kNotFound, Code::kUnsupported));
  EXPECT_THAT(status.message(), HasSubstr("steering rule of nobodys_name"));
}

}  // namespace
}  // namespace faultline::rdma
