#include "reports/csv_line.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "reports/text.h"

namespace faultline::reports {
namespace {

/// Whether a spreadsheet would take a text for a formula: it begins like one, and is no number.
bool looksLikeFormula(std::string_view text) {
  if (text.empty() || std::string_view("=+-@\t\r").find(text.front()) == std::string_view::npos) {
    return false;
  }
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error != std::errc() || end != text.data() + text.size() || !std::isfinite(number);
}

}  // namespace

void CsvLine::add(const std::string& text) {
  separate();
  std::string clean = cleanText(text);
  // As spreadsheets mark what is text.
  if (looksLikeFormula(clean)) clean.insert(clean.begin(), '\'');
  if (clean.find_first_of(",\"\n\r") == std::string::npos) {
    line_ += clean;
    return;
  }
  line_ += '"';
  for (const char character : clean) {
    if (character == '"') line_ += '"';
    line_ += character;
  }
  line_ += '"';
}

}  // namespace faultline::reports
