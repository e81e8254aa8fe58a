#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace faultline {
namespace {

/// Longer words are nobody's typing mistake, and the distance costs the product of the lengths.
constexpr std::size_t kLongestWord = 64;

/// Of a word that somebody has left unfinished; fewer letters begin too many.
constexpr std::size_t kShortestBeginning = 4;

/// Optimal string alignment distance (Damerau-Levenshtein without repeated edits of one place).
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min(
          {previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    before.swap(previous);
    previous.swap(current);
  }
  return previous[b.size()];
}

}  // namespace

std::string join(std::span<const std::string_view> words, std::string_view separator) {
  std::string joined;
  for (const auto word : words) {
    if (!joined.empty()) joined += separator;
    joined += word;
  }
  return joined;
}

std::string wrapText(std::string_view text, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    if (column > indent && column + 1 + word.size() > kTextColumns) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

std::string_view closestWord(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > kLongestWord) return {};
  for (const std::string_view candidate : known) {
    if (word.size() >= kShortestBeginning && candidate.starts_with(word)) return candidate;
  }
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t distance = editDistance(word, candidate);
    if (distance >= best_distance || distance >= candidate.size()) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> known) {
  std::string meant = didYouMean(word, known);
  if (!meant.empty()) return meant;
  if (known.empty()) return "";
  return fmt::format("; known are {}", join(known, ", "));
}

std::string didYouMean(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view closest = closestWord(word, known);
  return closest.empty() ? "" : fmt::format(" (did you mean '{}'?)", closest);
}

}  // namespace faultline
