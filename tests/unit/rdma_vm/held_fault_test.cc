// What holders of faults inside of guests are told.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/unique_fd.h"
#include "harness/agent/fault_holder.h"
#include "harness/site/rdma_vm/laboratory_faults.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::rdma_vm {
namespace {

using ::testing::HasSubstr;

TEST(HeldFaultTest, ParametersComeBackAsTheyWere) {
  const injector::FaultKind& kind = *injector::findFaultKind("rdma_throttle");
  const auto parameters = injector::FaultParameters::parse(kind, {{"rate", "2Mbit"}});
  ASSERT_TRUE(parameters.ok());
  const wire::HeldFault held = heldFault("rdma_throttle", *parameters, 1);
  EXPECT_EQ(held.kind, "rdma_throttle");
  EXPECT_EQ(held.device, "rxe1");
  const auto back = injector::FaultParameters::parse(kind, held.parameters);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back->all(), parameters->all());
  EXPECT_EQ(held.parameters.at("rate"), formatParameter(parameters->value("rate")));
}

TEST(HeldFaultTest, OnlyProgramsThatWereStartedWithItsVariableAreLookedFor) {
  const injector::FaultKind& kind = *injector::findFaultKind("qp_error");
  const auto parameters = injector::FaultParameters::parse(kind, {});
  ASSERT_TRUE(parameters.ok());
  const UniqueFd here(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  auto network = netlink::Socket::open(here.get());
  ASSERT_TRUE(network.ok()) << network.status().message();
  const auto refusal = [&](const std::string& started_with) {
    const auto fault =
        agent::makeHeldFault(heldFault("qp_error", *parameters, 0, started_with), *network);
    EXPECT_TRUE(fault.ok()) << fault.status().message();
    return fault.ok() ? (*fault)->apply().message() : "";
  };
  EXPECT_THAT(refusal("NUMBER=7"), HasSubstr("of this node that was started with NUMBER=7 has"));
  EXPECT_THAT(refusal(""), HasSubstr("of this node has the verbs shim"));
}

}  // namespace
}  // namespace faultline::rdma_vm
