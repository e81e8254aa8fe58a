#include "harness/workload/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace faultline::workload {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    std::string name = testing::TempDir() + "faultline_checkpoint_XXXXXX";
    directory_ = ::mkdtemp(name.data());
    path_ = directory_ / "rank_3.ckpt";
  }
  ~CheckpointTest() override { fs::remove_all(directory_); }

  std::vector<std::byte> state(std::size_t bytes) const {
    std::vector<std::byte> result(bytes);
    for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::byte>(i * 7);
    return result;
  }
  void save() { ASSERT_TRUE(saveCheckpoint(path_, 15, 3, state(1000)).ok()); }
  std::string loadError(std::uint32_t rank = 3) const {
    const auto loaded = loadCheckpoint(path_, rank);
    if (loaded.ok()) return "";
    EXPECT_THAT(loaded.status().message(), HasSubstr(path_.string()));
    return loaded.status().message();
  }
  void overwrite(std::streamoff offset, char byte) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset);
    file.put(byte);
  }
  std::size_t filesInDirectory() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  fs::path directory_;
  fs::path path_;
};

TEST_F(CheckpointTest, IsReadBack) {
  for (const std::size_t bytes : {0u, 1u, 1000u, 3000000u}) {
    ASSERT_TRUE(saveCheckpoint(path_, 15 + bytes, 3, state(bytes)).ok());
    const auto loaded = loadCheckpoint(path_, 3);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(loaded->iteration, 15 + bytes);
    EXPECT_EQ(loaded->rank, 3u);
    EXPECT_EQ(loaded->state, state(bytes));
    EXPECT_EQ(filesInDirectory(), 1u);
  }
}

TEST_F(CheckpointTest, NoFileIsNotFound) {
  EXPECT_EQ(loadCheckpoint(path_, 3).status().code(), Code::kNotFound);
}

TEST_F(CheckpointTest, EveryTruncationIsNoticed) {
  save();
  for (const std::uintmax_t size : {0u, 5u, 8u, 63u, 64u, 65u, 1063u}) {
    save();
    fs::resize_file(path_, size);
    EXPECT_THAT(loadError(), HasSubstr("cut short")) << size;
  }
}

TEST_F(CheckpointTest, ExtraBytesAreNoticed) {
  save();
  fs::resize_file(path_, 1065);
  EXPECT_THAT(loadError(), HasSubstr("should have 1000 bytes, the file has 1001: it is too long"));
}

TEST_F(CheckpointTest, EveryFlippedByteIsNoticed) {
  save();
  std::ifstream file(path_, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  ASSERT_EQ(good.size(), 1064u);
  for (std::size_t i = 0; i < good.size(); ++i) {
    overwrite(static_cast<std::streamoff>(i), static_cast<char>(good[i] ^ 0x10));
    EXPECT_NE(loadError(), "") << "byte " << i;
    overwrite(static_cast<std::streamoff>(i), good[i]);
  }
  EXPECT_EQ(loadError(), "");
}

TEST_F(CheckpointTest, MessagesSayWhatIsWrong) {
  save();
  EXPECT_THAT(loadError(4), HasSubstr("belongs to rank 3, not to rank 4"));
  overwrite(500, 'x');
  EXPECT_THAT(loadError(), HasSubstr("checksum"));
  overwrite(8, 9);
  EXPECT_THAT(loadError(), HasSubstr("version 9"));
  overwrite(0, 'x');
  EXPECT_THAT(loadError(), HasSubstr("no checkpoint file"));
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_THAT(loadError(), HasSubstr("not a regular file"));
}

TEST_F(CheckpointTest, AFullDiskIsReportedAndTheOldCheckpointStays) {
  save();
  // /dev/full answers every write as a full disk does.
  const fs::path temporary = path_.string() + ".tmp";
  fs::create_symlink("/dev/full", temporary);
  const Status status = saveCheckpoint(path_, 16, 3, state(1000));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(std::strerror(ENOSPC)));
  EXPECT_THAT(status.message(), HasSubstr("1064 bytes needed"));
  EXPECT_THAT(status.message(), HasSubstr(path_.string()));
  EXPECT_FALSE(fs::is_symlink(temporary));
  const auto loaded = loadCheckpoint(path_, 3);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->iteration, 15u);
}

TEST_F(CheckpointTest, AMissingDirectoryIsReported) {
  const Status status = saveCheckpoint(directory_ / "none" / "x", 1, 0, {});
  EXPECT_EQ(status.ok(), false);
  EXPECT_THAT(status.message(), HasSubstr("none/x"));
}

}  // namespace
}  // namespace faultline::workload
