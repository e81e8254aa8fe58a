// Faults inside of guests, told from outside (harness/site/rdma_vm/guest_fault.h): what a
// scenario's timeline meets when it goes wrong. That they strike is in tests/rdma/run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "harness/site/rdma_vm/laboratory_faults.h"
#include "injector/faults/registry.h"
#include "tests/support/laboratory_fixture.h"

namespace faultline::test {
namespace {

using ::testing::HasSubstr;

class GuestFaultTest : public LaboratoryTest {
 protected:
  std::unique_ptr<injector::Fault> make(const std::string& kind, int rail,
                                        const std::map<std::string, std::string>& texts = {}) {
    const auto parameters = injector::FaultParameters::parse(*injector::findFaultKind(kind), texts);
    EXPECT_TRUE(parameters.ok()) << parameters.status().message();
    auto fault = rdma_vm::makeLaboratoryFault(kind, *parameters, *lab_, kClient, rail);
    EXPECT_TRUE(fault.ok()) << fault.status().message();
    return fault.ok() ? std::move(*fault) : nullptr;
  }
};

TEST_F(GuestFaultTest, IsTakenBackWithItsObjectAndLeavesNoEvidenceBeforeItStrikes) {
  // By a filter or by a queue, as the kernel can: another test takes the filter's module away.
  const auto queues = [this] {
    return mustRun(kClient, program({"tc", "qdisc", "show", "dev", "rail0"}));
  };
  const std::string before = queues();
  auto fault = make("rdma_silent_drop", 0, {{"direction", "out"}, {"frames", "all"}});
  ASSERT_OK(fault->prepare());
  EXPECT_EQ(queues(), before);
  ASSERT_OK(fault->apply());
  ASSERT_EQ(fault->transitions().size(), 1u);
  EXPECT_TRUE(fault->transitions()[0].broken);
  EXPECT_NE(queues(), before);
  ASSERT_OK_AND_ASSIGN(const injector::Evidence evidence, fault->evidence());
  EXPECT_TRUE(evidence.ok) << evidence.observed;
  ASSERT_OK(fault->revert());
  EXPECT_FALSE(fault->transitions().back().broken);
  EXPECT_EQ(queues(), before);
  // Again, and nobody takes it back.
  ASSERT_OK(fault->apply());
  EXPECT_NE(queues(), before);
  fault.reset();
  EXPECT_EQ(queues(), before);
}

TEST_F(GuestFaultTest, WithoutAStrikeThereIsNoEvidence) {
  const auto fault = make("rdma_port_down", 1);
  ASSERT_OK(fault->prepare());
  ASSERT_OK_AND_ASSIGN(const injector::Evidence evidence, fault->evidence());
  EXPECT_FALSE(evidence.ok) << evidence.observed;
  EXPECT_TRUE(fault->transitions().empty());
}

TEST_F(GuestFaultTest, WhereNoProgramHasTheShimItSaysWhatIsMissing) {
  const auto fault = make("qp_error", 0);
  ASSERT_OK(fault->prepare());
  const Status applied = fault->apply();
  EXPECT_EQ(applied.code(), Code::kUnavailable);
  EXPECT_THAT(applied.message(), HasSubstr("LD_PRELOAD"));
  EXPECT_TRUE(fault->transitions().empty());
}

// A scenario prepares all its faults before the first strikes.
TEST_F(GuestFaultTest, StrikesTheDeviceThatWasMadeAgainAfterItWasPrepared) {
  const auto queues = [this] {
    return mustRun(kClient, program({"tc", "qdisc", "show", "dev", "rail1"}));
  };
  const std::string before = queues();
  const auto erased = make("rdma_link_delete", 1);
  const auto dropped = make("rdma_silent_drop", 1, {{"direction", "out"}, {"frames", "all"}});
  const auto down = make("rdma_port_down", 1);
  const auto again = make("rdma_link_delete", 1);
  for (injector::Fault* const fault : {&*erased, &*dropped, &*down, &*again}) {
    ASSERT_OK(fault->prepare());
  }
  ASSERT_OK(erased->apply());
  for (injector::Fault* const fault : {&*dropped, &*down, &*again}) {
    const Status gone = fault->apply();
    EXPECT_EQ(gone.code(), Code::kUnavailable);
    EXPECT_THAT(gone.message(), HasSubstr("rxe1 was deleted since this fault was prepared"));
    EXPECT_TRUE(fault->transitions().empty());
  }
  ASSERT_OK(erased->revert());
  for (injector::Fault* const fault : {&*dropped, &*down, &*again, &*down}) {
    ASSERT_OK(fault->apply());
    ASSERT_OK_AND_ASSIGN(const injector::Evidence evidence, fault->evidence());
    EXPECT_TRUE(evidence.ok) << evidence.observed;
    ASSERT_OK(fault->revert());
  }
  // One of its name that is not the same.
  const auto relink = [this](const std::string& interface) {
    mustRun(kClient,
            shell("rdma link delete rxe1; rdma link add rxe1 type rxe netdev " + interface));
  };
  relink("mgmt");
  const Status other = dropped->apply();
  EXPECT_EQ(other.code(), Code::kUnavailable);
  EXPECT_THAT(other.message(), HasSubstr("over mgmt"));
  EXPECT_EQ(queues(), before) << "it has done nothing";
  relink("rail1");
}

TEST_F(GuestFaultTest, ADeviceThatIsNotThereIsRefusedBeforeTheRun) {
  const auto fault = make("rdma_link_delete", 7);
  const Status prepared = fault->prepare();
  EXPECT_EQ(prepared.code(), Code::kNotFound);
  EXPECT_THAT(prepared.message(), HasSubstr("rxe7"));
  EXPECT_EQ(rdma_vm::makeLaboratoryFault("loss", {}, *lab_, kClient, 0).status().code(),
            Code::kUnsupported);
}

}  // namespace
}  // namespace faultline::test
