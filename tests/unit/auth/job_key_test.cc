#include "resilient_ccl/auth/job_key.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "resilient_ccl/auth/key_agreement.h"
#include "tests/support/refused_calls.h"

namespace faultline::auth {
namespace {

TEST(JobKeyTest, TwoJobsHaveTwoKeys) { EXPECT_NE(JobKey::random(), JobKey::random()); }

TEST(JobKeyTest, WhereGetrandomIsRefusedTheDeviceGivesTheBytes) {
  EXPECT_TRUE(test::worksWithout({SYS_getrandom}, EPERM, [] {
    ::alarm(10);
    return JobKey::random() != JobKey::random();
  }));
}

TEST(JobKeyTest, WithoutAnyRandomNumbersThereIsNoKey) {
  EXPECT_TRUE(test::worksWithout({SYS_getrandom, SYS_openat}, EPERM, [] {
    ::alarm(10);
    try {
      JobKey::random();
    } catch (const std::runtime_error&) {
      return true;
    }
    return false;
  }));
}

TEST(JobKeyTest, ItsDigitsAreReadBack) {
  const JobKey key = JobKey::random();
  const auto read = JobKey::fromHex(key.hex());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, key);
}

TEST(JobKeyTest, NonsenseIsRefusedAndNotRepeatedInTheMessage) {
  const std::string good(32, 'a');
  ASSERT_TRUE(JobKey::fromHex(good).ok());
  for (const std::string& text :
       {std::string(), good.substr(1), good + "a", std::string(31, 'a') + "g",
        std::string(30, 'a') + "+1", std::string(30, 'a') + " 1"}) {
    const auto read = JobKey::fromHex(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().message().find("aaaa"), std::string::npos);
    EXPECT_NE(read.status().message().find("32 hexadecimal digits"), std::string::npos);
  }
}

/// Whether nothing is left of the object's memory once it is gone.
template <typename Kept>
bool leavesNothing(const Kept& kept) {
  alignas(Kept) std::array<std::byte, sizeof(Kept)> memory{};
  auto* const copy = new (memory.data()) Kept(kept);
  std::destroy_at(copy);
  const volatile std::byte* const left = memory.data();
  bool nothing = true;
  for (std::size_t i = 0; i < memory.size(); ++i) nothing = nothing && left[i] == std::byte{0};
  return nothing;
}

TEST(JobKeyTest, KeysAndSecretsAreOverwrittenWhenTheyAreNoLongerNeeded) {
  std::array<std::byte, Secret::kBytes> bytes;
  bytes.fill(std::byte{0x5a});
  EXPECT_TRUE(leavesNothing(Secret(bytes)));
  EXPECT_TRUE(leavesNothing(JobKey::random()));
  EXPECT_FALSE(leavesNothing(bytes)) << "this test would find something";
}

TEST(JobKeyTest, TwoKeysAreEqualOnlyInAllOfTheirBytes) {
  std::array<std::byte, JobKey::kBytes> bytes{};
  const JobKey key(bytes);
  EXPECT_EQ(key, JobKey(bytes));
  for (std::byte& byte : bytes) {
    byte = std::byte{1};
    EXPECT_NE(key, JobKey(bytes));
    byte = std::byte{0};
  }
}

}  // namespace
}  // namespace faultline::auth
