#include "tests/netns/nccl/plugin_fixture.h"

// Where the NICs of a host are: which of them takes over from which, and what a path carries.

namespace faultline::test {
namespace {

using ::testing::StartsWith;

/// Three rails; the second one's NIC is at the other processor. The nodes' NICs are not on PCI:
/// what the plugin reads of them is a /sys that is made here.
class NcclPluginPathTest : public NcclPluginTest {
 protected:
  int rails() const override { return 3; }
  void SetUp() override {
    NcclPluginTest::SetUp();
    if (IsSkipped()) return;
    place("rail0", "pci0000:17/0000:17:01.0/0000:18:00.0", 0);
    place("rail1", "pci0000:80/0000:80:01.0/0000:81:00.0", 1);
    place("rail2", "pci0000:17/0000:17:03.0/0000:19:00.0", 0);
    sysfs_ = (folder_ / "sys").string();
  }
  void place(const std::string& nic, const std::string& where, int numa) const {
    const std::filesystem::path card = folder_ / "sys" / "devices" / where;
    const std::filesystem::path folder = folder_ / "sys" / "class" / "net" / nic;
    std::filesystem::create_directories(card);
    std::filesystem::create_directories(folder);
    std::ofstream(card / "numa_node") << numa << "\n";
    std::filesystem::create_symlink("../../../devices/" + where, folder / "device");
  }
  void stop() const { std::ofstream(folder_ / "stop"); }
  /// Of a side that has ended well.
  nlohmann::json peerOf(int side) {
    const std::string word = lastWord(side);
    EXPECT_THAT(word, StartsWith("ok ")) << word;
    const nlohmann::json told = counters(side);
    EXPECT_EQ(
        told["rails"][0]["partners"],
        nlohmann::json::parse(R"([{"path": "root", "rail": 2}, {"path": "socket", "rail": 1}])"));
    EXPECT_EQ(
        told["rails"][2]["partners"],
        nlohmann::json::parse(R"([{"path": "root", "rail": 0}, {"path": "socket", "rail": 1}])"));
    return told["peers"][0];
  }
  static Variables withAllRails(const char* strategy) {
    return {{"FAULTLINE_NICS", "rail0,rail1,rail2"}, {"FAULTLINE_NET_STRATEGY", strategy}};
  }
};

TEST_F(NcclPluginPathTest, TheNearestNicTakesOver) {
  startPeers({.seconds = 60, .connections = 1}, withAllRails("hot_repair"));
  const auto fault = makeTestFault(1, 0, "port_down", {{"how", "carrier"}});
  ASSERT_OK(fault->prepare());
  awaitLoad(0);
  ASSERT_OK(fault->apply());
  awaitLoad(2);
  stop();
  for (int side = 0; side < 2; ++side) {
    const nlohmann::json peer = peerOf(side);
    EXPECT_GE(peer["failovers"], 1) << peer;
    EXPECT_GT(peer["bytes_sent_by_rail"][2], 1'000'000) << peer;
    EXPECT_EQ(peer["bytes_sent_by_rail"][1], 0) << peer;
  }
  EXPECT_OK(fault->revert());
}

// As the link between two processors might make it.
TEST_F(NcclPluginPathTest, APathHasTheWeightOfWhatItCarries) {
  const auto fault = makeTestFault(1, 1, "throttle", {{"rate", "40%"}});
  ASSERT_OK(fault->prepare());
  ASSERT_OK(fault->apply());
  startPeers({.seconds = 60}, withAllRails("balance"));
  awaitLoad(0, 40'000'000);
  stop();
  for (int side = 0; side < 2; ++side) {
    const nlohmann::json peer = peerOf(side);
    const std::vector<double> weights = peer["weight_by_rail"];
    ASSERT_EQ(weights.size(), 3U);
    // A sixth, and five twelfths of each of the others.
    EXPECT_GT(weights[1], 0.05) << peer;
    EXPECT_LT(weights[1], 0.28) << peer;
    EXPECT_GT(std::min(weights[0], weights[2]), 0.3) << peer;
    EXPECT_EQ(peer["failovers"], 0) << peer << railEvents(side);
  }
  EXPECT_OK(fault->revert());
}

}  // namespace
}  // namespace faultline::test
