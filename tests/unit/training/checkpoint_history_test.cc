#include "harness/workload/checkpoint_history.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace faultline::workload {
namespace {

class CheckpointHistoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/history.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return directory_ + "/rank3"; }

  std::string directory_;
  const std::vector<std::byte> state_ = std::vector<std::byte>(100, std::byte{7});
};

TEST_F(CheckpointHistoryTest, KeepsTheLastTwo) {
  const CheckpointHistory history(path(), 3);
  EXPECT_EQ(history.newest().status().code(), Code::kNotFound);
  for (const std::uint64_t iteration : {5, 10, 15}) {
    ASSERT_TRUE(history.save(iteration, state_).ok());
    EXPECT_EQ(history.newest()->iteration, iteration);
  }
  EXPECT_EQ(history.at(15)->state, state_);
  EXPECT_EQ(history.at(10)->state, state_);
  EXPECT_EQ(history.at(5).status().code(), Code::kNotFound);
}

TEST_F(CheckpointHistoryTest, TheOlderOneStandsInForAnUnfinishedOne) {
  const CheckpointHistory history(path(), 3);
  ASSERT_TRUE(history.save(5, state_).ok());
  ASSERT_TRUE(history.save(10, state_).ok());
  std::filesystem::remove(path());
  EXPECT_EQ(history.newest()->iteration, 5);
  EXPECT_EQ(history.at(5)->iteration, 5);
}

TEST_F(CheckpointHistoryTest, ADamagedOneIsNotPassedOver) {
  const CheckpointHistory history(path(), 3);
  ASSERT_TRUE(history.save(5, state_).ok());
  ASSERT_TRUE(history.save(10, state_).ok());
  std::filesystem::resize_file(path(), 20);
  EXPECT_EQ(history.newest().status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace faultline::workload
