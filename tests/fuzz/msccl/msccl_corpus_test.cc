#include <gtest/gtest.h>

#include <string>
#include <vector>

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

TEST(MscclFuzzTest, MutationsKeepThePromises) {
  constexpr int kTexts = 5'000;
  int schedules = 0;
  testing::feedMutations(testing::fuzzCorpus("msccl"), "<>/=\"' &;-0123456789isrc\n\xff", kTexts,
                         [&](int i, const std::string& text) {
                           SCOPED_TRACE(i);
                           schedules += feed(text) ? 1 : 0;
                         });
  EXPECT_GT(schedules, kTexts / 50);  // some changes are deep enough to reach the verifier
}

}  // namespace
}  // namespace faultline::fuzz
