#pragma once

#include <map>
#include <memory>
#include <string>

#include "harness/site/netns/cluster.h"
#include "injector/faults/registry.h"
#include "tests/support/bulk_flow.h"
#include "tests/support/netns_fixture.h"
#include "tests/support/poll_until.h"

namespace faultline::injector {

/// Three nodes with two rails; the target is rail 0 of node 1, or its path to node 2.
class FaultTest : public test::NetnsTest {
 protected:
  static constexpr BitsPerSecond kRailRate = 200'000'000;
  static constexpr int kTargetNode = 1;
  static constexpr int kPeerNode = 2;
  /// Longer than anything that works takes on a busy machine.
  static constexpr Duration kLong = 5s;

  void SetUp() override {
    test::NetnsTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_OK_AND_ASSIGN(cluster_,
                         netns::Cluster::create({.nodes = 3, .rails = 2, .rail_rate = kRailRate}));
    target_ = cluster_->pathTarget(kTargetNode, kPeerNode, 0);
  }

  std::unique_ptr<Fault> makeTestFault(std::string_view kind,
                                       const std::map<std::string, std::string>& texts = {}) {
    const auto parameters = FaultParameters::parse(*findFaultKind(kind), texts);
    EXPECT_TRUE(parameters.ok()) << parameters.status().message();
    auto fault = makeFault(kind, *parameters, target_);
    EXPECT_TRUE(fault.ok()) << fault.status().message();
    return std::move(fault).value();
  }

  /// A value for each parameter without a default.
  static std::map<std::string, std::string> requiredOf(const FaultKind& kind) {
    const std::map<ParameterType, std::string> examples{{ParameterType::kRateOrPercent, "50%"},
                                                        {ParameterType::kPercent, "30%"},
                                                        {ParameterType::kDuration, "1ms"},
                                                        {ParameterType::kRate, "1Mbit"}};
    if (kind.name == "external") {
      return {{"apply", "sh -c 'ip link set $FAULTLINE_INTERFACE alias broken'"},
              {"evidence", "sh -c 'ip link show $FAULTLINE_INTERFACE | grep broken'"},
              {"revert", "sh -c 'ip link set $FAULTLINE_INTERFACE alias whole'"}};
    }
    std::map<std::string, std::string> texts;
    for (const ParameterSpec& spec : kind.parameters) {
      if (spec.required()) texts[std::string(spec.name)] = examples.at(spec.type);
    }
    return texts;
  }

  test::FlowEnd end(int node, int rail = 0) const {
    return {cluster_->nodeNamespace(node), netns::railAddress(node, rail), netns::railName(rail)};
  }

  std::unique_ptr<test::BulkFlow> startFlow(int from, int to) {
    auto flow = test::BulkFlow::start(end(from), end(to));
    EXPECT_TRUE(flow.ok()) << flow.status().message();
    if (!flow.ok()) return nullptr;
    EXPECT_TRUE(test::pollUntil(kLong, [&] { return (*flow)->receivedBytes() > 100'000; }));
    return std::move(flow).value();
  }

  /// Whether new connections through the target work in both directions.
  bool targetCarriesTraffic() {
    const auto there = startFlow(kTargetNode, 0);
    const auto back = startFlow(2, kTargetNode);
    return there != nullptr && back != nullptr;
  }

  /// Whether the stream comes to a halt (what is in flight may still arrive).
  bool stops(const test::BulkFlow& flow) {
    std::uint64_t last = flow.receivedBytes();
    TimePoint since = now();
    return test::pollUntil(kLong, [&] {
      if (flow.receivedBytes() != last) since = now();
      last = flow.receivedBytes();
      return now() - since > 100ms;
    });
  }

  std::unique_ptr<netns::Cluster> cluster_;
  netlink::LinkTarget target_;
};

}  // namespace faultline::injector
