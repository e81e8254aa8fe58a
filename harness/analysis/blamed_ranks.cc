#include "harness/analysis/blamed_ranks.h"

#include <charconv>

namespace faultline::run {

std::vector<int> blamedRanks(std::string_view message) {
  constexpr std::string_view kWord = "rank ";
  std::vector<int> ranks;
  const char* const end = message.data() + message.size();
  for (auto at = message.find(kWord); at != std::string_view::npos; at = message.find(kWord, at)) {
    const bool first = at == 0;
    at += kWord.size();
    int rank = 0;
    const auto number = std::from_chars(message.data() + at, end, rank);
    if (number.ec != std::errc()) continue;
    const bool author = first && number.ptr != end && *number.ptr == ':';
    if (!author) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace faultline::run
