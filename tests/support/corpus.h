#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

/// Texts that a reader is fed with, and random changes of them.
namespace faultline::testing {

/// All files of tests/data/fuzz/`name`, in the order of their names.
inline std::vector<std::string> fuzzCorpus(const std::string& name) {
  std::vector<std::filesystem::path> files;
  const std::string folder = std::string(FAULTLINE_SOURCE_DIR) + "/tests/data/fuzz/" + name;
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

/// One random change: a byte (a telling one, or any), a stretch removed, doubled, or taken from
/// another text.
inline std::string mutated(std::string text, const std::vector<std::string>& all,
                           std::string_view telling, Random& random) {
  if (text.empty()) return "x";
  const std::size_t at = random.below(text.size());
  const std::size_t length = 1 + random.below(std::min<std::size_t>(text.size() - at, 40));
  switch (random.below(5)) {
    case 0:
      text[at] = telling[random.below(telling.size())];
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

/// Feeds `count` texts with one to four changes each to `feed(index, text)`: the same ones every
/// time.
template <typename Feed>
void feedMutations(const std::vector<std::string>& texts, std::string_view telling, int count,
                   Feed feed) {
  constexpr std::uint64_t kSeed = 20'260'101;
  for (int i = 0; i < count; ++i) {
    Random random(kSeed + i);
    std::string text = texts[random.below(texts.size())];
    for (std::uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
      text = mutated(std::move(text), texts, telling, random);
    }
    feed(i, text);
  }
}

}  // namespace faultline::testing
