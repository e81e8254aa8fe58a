#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fuzz/scenario/scenario_entry.h"
#include "tests/support/corpus.h"

namespace faultline::fuzz {
namespace {

void feed(const std::string& text) {
  scenarioReader(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

TEST(ScenarioFuzzTest, CorpusKeepsThePromises) {
  const std::vector<std::string> texts = testing::fuzzCorpus("scenario");
  ASSERT_GE(texts.size(), 10u);
  for (const std::string& text : texts) feed(text);
}

TEST(ScenarioFuzzTest, MutationsKeepThePromises) {
  constexpr int kTexts = 20'000;
  testing::feedMutations(testing::fuzzCorpus("scenario"), "{}[]:,-?&*!|>'\"%@#\n\t 0\xff.", kTexts,
                         [](int i, const std::string& text) {
                           SCOPED_TRACE(i);
                           feed(text);
                         });
}

}  // namespace
}  // namespace faultline::fuzz
