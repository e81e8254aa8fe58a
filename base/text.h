#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace faultline {

/// Width of what we print for people.
inline constexpr std::size_t kTextColumns = 100;

std::string join(std::span<const std::string_view> words, std::string_view separator);

/// Breaks `text` at blanks so that lines fit kTextColumns, each after the first indented by
/// `indent`.
std::string wrapText(std::string_view text, std::size_t indent);

/// The known word that `word` most likely meant, or "" when none is close: from four letters on the
/// first that begins with it; else the closest, with at most a third of its letters (at least one)
/// inserted, deleted, replaced or swapped with the neighbour.
std::string_view closestWord(std::string_view word, std::span<const std::string_view> known);

/// " (did you mean 'x'?)", or "; known are a, b, c" when nothing is close, for the end of a message
/// about an unknown word.
std::string suggestion(std::string_view word, std::span<const std::string_view> known);

/// The same where the message lists the known words itself: "" when nothing is close.
std::string didYouMean(std::string_view word, std::span<const std::string_view> known);

}  // namespace faultline
