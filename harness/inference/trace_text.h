#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

/// The lines of request traces: cells, numbers and dates. Pure.
namespace faultline::inference {

/// A cell of a line, and where it begins.
struct Cell {
  std::string text;
  std::size_t column = 1;
};

/// kInvalidArgument with the place.
Status wrongAt(int line, std::size_t column, std::string_view what);

/// Without blanks at its ends.
std::string_view trimmed(std::string_view text);

/// The cells of a line of CSV (RFC 4180), without blanks around them.
Result<std::vector<Cell>> cellsOf(std::string_view line, int number);

/// Whether all of the text is a number.
template <typename Number>
bool isWhole(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// A moment.
struct Date {
  std::int64_t seconds = 0;  ///< since 1970
  double fraction = 0;
};

/// "2023-11-16 18:15:46.6805900", with 'T' for the blank, and with or without a zone; one that is
/// not said is UTC.
std::optional<Date> dateOf(std::string_view text);

}  // namespace faultline::inference
