#include "resilient_ccl/nccl/nic_path.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace faultline::nccl {
namespace {

namespace fs = std::filesystem;

/// /sys of a node with two sockets, as the kernel lays it out.
class NicPathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "faultline-sysfs-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    sys_ = pattern;
    fs::create_directories(sys_ / "class" / "net");
  }
  void TearDown() override { fs::remove_all(sys_); }

  Device nic(const std::string& name, const std::string& place, const std::string& numa) {
    const fs::path card = sys_ / "devices" / place;
    fs::create_directories(card);
    if (!numa.empty()) std::ofstream(card / "numa_node") << numa << "\n";
    fs::create_directories(sys_ / "class" / "net" / name);
    fs::create_directory_symlink(card, sys_ / "class" / "net" / name / "device");
    return inspect({.name = name}, sys_.string());
  }
  static Device virtualNic() { return inspect({.name = "none_such"}, "/nonexistent"); }

  fs::path sys_;
};

TEST_F(NicPathTest, IsNamedByWhatJoinsTheTwo) {
  const Device first = nic("a0", "pci0000:17/0000:17:01.0/0000:18:00.0/0000:19:00.0", "0");
  const Device port = nic("a1", "pci0000:17/0000:17:01.0/0000:18:00.0/0000:19:00.1", "0");
  const Device below = nic("a2", "pci0000:17/0000:17:01.0/0000:18:01.0/0000:1a:00.0", "0");
  const Device root = nic("a3", "pci0000:17/0000:17:03.0/0000:1b:00.0", "0");
  const Device node = nic("a4", "pci0000:30/0000:30:01.0/0000:31:00.0", "0");
  const Device socket = nic("a5", "pci0000:80/0000:80:01.0/0000:81:00.0", "1");
  const Device untold = nic("a6", "pci0000:90/0000:90:01.0/0000:91:00.0", "-1");
  const Device silent = nic("a7", "pci0000:91/0000:91:01.0/0000:92:00.0", "");
  EXPECT_EQ(socket.numaNode, 1);
  EXPECT_EQ(untold.numaNode, -1);
  EXPECT_EQ(silent.numaNode, -1);
  EXPECT_EQ(nameOf(pathBetween(first, port)), "card");
  EXPECT_EQ(nameOf(pathBetween(first, first)), "card");
  EXPECT_EQ(nameOf(pathBetween(first, below)), "switch");
  EXPECT_EQ(nameOf(pathBetween(first, root)), "root");
  EXPECT_EQ(nameOf(pathBetween(first, node)), "numa");
  EXPECT_EQ(nameOf(pathBetween(first, socket)), "socket");
  EXPECT_EQ(nameOf(pathBetween(socket, first)), "socket");
  EXPECT_EQ(nameOf(pathBetween(first, untold)), "unknown");
  EXPECT_EQ(nameOf(pathBetween(untold, silent)), "unknown") << "-1 is no node that they share";
  EXPECT_EQ(nameOf(pathBetween(first, virtualNic())), "unknown");
  EXPECT_EQ(nameOf(pathBetween(virtualNic(), virtualNic())), "unknown");
}

TEST_F(NicPathTest, CardsOnOneBusOfTheRootAreTwo) {
  const Device one = nic("a0", "pci0000:00/0000:00:05.0", "0");
  const Device other = nic("a1", "pci0000:00/0000:00:06.0", "0");
  EXPECT_EQ(nameOf(pathBetween(one, other)), "root");
}

TEST_F(NicPathTest, PartnersAreNearestFirst) {
  const std::vector<Device> devices{
      nic("a0", "pci0000:17/0000:17:01.0/0000:18:00.0/0000:19:00.0", "0"),
      nic("a1", "pci0000:80/0000:80:01.0/0000:81:00.0", "1"),
      nic("a2", "pci0000:30/0000:30:01.0/0000:31:00.0", "0"),
      nic("a3", "pci0000:17/0000:17:01.0/0000:18:01.0/0000:1a:00.0", "0"),
      virtualNic(),
      nic("a5", "pci0000:17/0000:17:03.0/0000:1b:00.0", "0"),
  };
  const auto partners = partnersOf(devices);
  ASSERT_EQ(partners.size(), 6U);
  EXPECT_EQ(partners[0], (std::vector<int>{3, 5, 2, 1, 4}));
  EXPECT_EQ(partners[1], (std::vector<int>{2, 5, 3, 0, 4}))
      << "all but the last across the sockets: fewer bridges first";
}

TEST_F(NicPathTest, WhereNothingIsKnownPartnersAreInOrderOfTheirNumbers) {
  EXPECT_EQ(partnersOf({virtualNic(), virtualNic(), virtualNic()}),
            (std::vector<std::vector<int>>{{1, 2}, {2, 0}, {0, 1}}));
}

}  // namespace
}  // namespace faultline::nccl
