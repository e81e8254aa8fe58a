#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fuzz/inputs/inputs_entry.h"
#include "tests/support/corpus.h"

namespace faultline::fuzz {
namespace {

void feed(const std::string& text) {
  inputReaders(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

TEST(InputsFuzzTest, CorpusKeepsThePromises) {
  const std::vector<std::string> texts = testing::fuzzCorpus("inputs");
  ASSERT_GE(texts.size(), 10u);
  for (const std::string& text : texts) feed(text);
}

TEST(InputsFuzzTest, MutationsKeepThePromises) {
  constexpr int kTexts = 10'000;
  testing::feedMutations(testing::fuzzCorpus("inputs"),
                         ",\"{}[]()\\.*+?^$|:-#\r\n\t 09\x1b\xff\xc2", kTexts,
                         [](int i, const std::string& text) {
                           SCOPED_TRACE(i);
                           feed(text);
                         });
}

}  // namespace
}  // namespace faultline::fuzz
