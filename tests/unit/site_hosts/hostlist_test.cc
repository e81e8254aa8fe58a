#include "harness/site/hosts/hostlist.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace faultline::hosts {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> expanded(const std::string& list) {
  const auto names = expandHostlist(list);
  EXPECT_TRUE(names.ok()) << names.status().message();
  return names.ok() ? *names : std::vector<std::string>{};
}

TEST(HostlistTest, IsWhatScontrolShowHostnamesSays) {
  EXPECT_THAT(expanded("n1"), ElementsAre("n1"));
  EXPECT_THAT(expanded("n1,login,n2"), ElementsAre("n1", "login", "n2"));
  EXPECT_THAT(expanded("n[1-3]"), ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(expanded("n[01-03,7]"), ElementsAre("n01", "n02", "n03", "n7"));
  EXPECT_THAT(expanded("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(expanded("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(expanded("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(expanded("n[4],,x[1,3]"), ElementsAre("n4", "x1", "x3"));
  EXPECT_THAT(expanded("n[01-3,1-010]"), SizeIs(13));
  EXPECT_THAT(expanded("r[1-2]n[0-1]"), ElementsAre("r1n0", "r1n1", "r2n0", "r2n1"));
}

TEST(HostlistTest, SaysWhatIsNoList) {
  for (const auto& [list, why] : std::vector<std::pair<std::string, std::string>>{
           {"n[1-3", "brackets are not in pairs"},
           {"n1]", "brackets are not in pairs"},
           {"n[[1]]", "no range of numbers"},
           {"n[]", "'' is no range of numbers"},
           {"n[1,]", "'' is no range of numbers"},
           {"n[-3]", "'-3' is no range of numbers"},
           {"n[3-1]", "'3-1' is no range of numbers"},
           {"n[1-]", "'1-' is no range of numbers"},
           {"n[a-c]", "'a-c' is no range of numbers"},
           {"n[1-2-3]", "'1-2-3' is no range of numbers"},
           {"n[0-65536]", "more than 65536 names"},
           {"n[1-1000]x[1-1000]", "more than 65536 names"},
           {"n[1-40000],m[1-40000]", "more than 65536 names"},
           {"n[1-99999999999999999999]", "no range of numbers"}}) {
    const auto names = expandHostlist(list);
    ASSERT_FALSE(names.ok()) << list;
    EXPECT_THAT(names.status().message(), HasSubstr(why)) << list;
    EXPECT_THAT(names.status().message(), HasSubstr(list));
  }
}

TEST(HostlistTest, EachNameOfAListIsThereOnceAndInOrder) {
  constexpr int kLists = 500;
  for (int seed = 0; seed < kLists; ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    const auto upTo = [&random](int most) { return static_cast<int>(random() % (most + 1U)); };
    std::string list;
    std::vector<std::string> names;
    const int words = 1 + upTo(3);
    for (int word = 0; word < words; ++word) {
      // Written and expanded side by side, of parts whose expansion is plain.
      std::string written;
      std::vector<std::string> of{""};
      const int parts = 1 + upTo(2);
      for (int part = 0; part < parts; ++part) {
        const std::string plain(static_cast<std::size_t>(1 + upTo(2)), "abn-"[upTo(3)]);
        std::string ranges;
        std::vector<std::string> longer;
        std::vector<std::string> numbers;
        const int count = upTo(3);
        for (int range = 0; range < count; ++range) {
          const int low = upTo(120);
          const int high = low + upTo(12);
          const int width = 1 + upTo(4);
          const std::string first = fmt::format("{:0{}}", low, width);
          ranges += range > 0 ? "," : "";
          ranges += high == low && upTo(1) == 0 ? first : fmt::format("{}-{}", first, high);
          for (int number = low; number <= high; ++number) {
            numbers.push_back(fmt::format("{:0{}}", number, first.size()));
          }
        }
        written += plain + (count > 0 ? "[" + ranges + "]" : "");
        if (count == 0) numbers.push_back("");
        for (const std::string& begun : of) {
          for (const std::string& number : numbers) longer.push_back(begun + plain + number);
        }
        of = longer;
      }
      list += (word > 0 ? "," : "") + written;
      names.insert(names.end(), of.begin(), of.end());
    }
    ASSERT_THAT(expanded(list), ElementsAreArray(names)) << "seed " << seed << ": " << list;
  }
}

}  // namespace
}  // namespace faultline::hosts
