#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/fuzz/msccl/msccl_entry.h"

namespace faultline::fuzz {
namespace {

std::vector<std::string> corpus() {
  std::vector<std::filesystem::path> files;
  const std::string folder = std::string(FAULTLINE_SOURCE_DIR) + "/tests/data/fuzz/msccl";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

bool feed(const std::string& text) {
  return mscclReader(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

/// One random change: a byte, a stretch removed, doubled, or taken from another file.
std::string mutated(std::string text, const std::vector<std::string>& all, Random& random) {
  if (text.empty()) return "x";
  const std::size_t at = random.below(text.size());
  const std::size_t length = 1 + random.below(std::min<std::size_t>(text.size() - at, 40));
  constexpr std::string_view kTelling = "<>/=\"' &;-0123456789isrc\n\xff";
  switch (random.below(5)) {
    case 0:
      text[at] = kTelling[random.below(kTelling.size())];
      break;
    case 1:
      text[at] = static_cast<char>(random.below(256));
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      text.insert(at, text.substr(at, length));
      break;
    default: {
      const std::string& other = all[random.below(all.size())];
      if (!other.empty()) text.insert(at, other.substr(random.below(other.size()), length));
    }
  }
  return text;
}

TEST(MscclFuzzTest, CorpusKeepsThePromises) {
  const std::vector<std::string> texts = corpus();
  ASSERT_GE(texts.size(), 4u);
  for (const std::string& text : texts) EXPECT_TRUE(feed(text)) << text;
}

TEST(MscclFuzzTest, MutationsKeepThePromises) {
  constexpr std::uint64_t kSeed = 20'260'101;
  constexpr int kTexts = 5'000;
  int schedules = 0;
  const std::vector<std::string> texts = corpus();
  for (int i = 0; i < kTexts; ++i) {
    SCOPED_TRACE(i);
    Random random(kSeed + i);
    std::string text = texts[random.below(texts.size())];
    for (std::uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
      text = mutated(std::move(text), texts, random);
    }
    schedules += feed(text) ? 1 : 0;
  }
  EXPECT_GT(schedules, kTexts / 50);  // some changes are deep enough to reach the verifier
}

}  // namespace
}  // namespace faultline::fuzz
