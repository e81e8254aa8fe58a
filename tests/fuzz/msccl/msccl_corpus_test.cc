#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "tests/fuzz/msccl/msccl_entry.h"
#include "tests/support/corpus.h"

namespace faultline::fuzz {
namespace {

bool feed(const std::string& text) {
  return mscclReader(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

TEST(MscclFuzzTest, CorpusKeepsThePromises) {
  const std::vector<std::string> texts = testing::fuzzCorpus("msccl");
  ASSERT_GE(texts.size(), 4u);
  for (const std::string& text : texts) EXPECT_TRUE(feed(text)) << text;
}

constexpr int kTexts = 5'000;

TEST(MscclFuzzTest, MutationsKeepThePromises) {
  int schedules = 0;
  testing::feedMutations(testing::fuzzCorpus("msccl"), "<>/=\"' &;-0123456789isrc\n\xff", kTexts,
                         [&](int i, const std::string& text) {
                           SCOPED_TRACE(i);
                           schedules += feed(text) ? 1 : 0;
                         });
  EXPECT_GT(schedules, 0) << "names that are not known are mistakes, so that few are left";
}

// Numbers alone: such files are well-formed, and many reach the verifier.
TEST(MscclFuzzTest, OtherNumbersKeepThePromises) {
  const std::vector<std::string> corpus = testing::fuzzCorpus("msccl");
  constexpr std::string_view kDigits = "0123456789";
  Random random(7);
  int schedules = 0;
  for (int i = 0; i < kTexts; ++i) {
    SCOPED_TRACE(i);
    std::string text = corpus[random.below(corpus.size())];
    for (std::uint64_t change = random.below(3);; --change) {
      const std::size_t digit = text.find_first_of(kDigits, random.below(text.size()));
      if (digit != std::string::npos) text[digit] = kDigits[random.below(kDigits.size())];
      if (change == 0) break;
    }
    schedules += feed(text) ? 1 : 0;
  }
  EXPECT_GT(schedules, kTexts / 50);  // some changes are deep enough to reach the verifier
}

}  // namespace
}  // namespace faultline::fuzz
