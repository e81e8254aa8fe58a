#include "harness/inference/trace_text.h"

#include <algorithm>
#include <chrono>

namespace faultline::inference {
namespace {

bool isBlank(char c) { return c == ' ' || c == '\t'; }

/// Takes `count` digits from the front.
bool takeDigits(std::string_view& text, std::size_t count, int& value) {
  if (text.size() < count || !isWhole(text.substr(0, count), value) || value < 0) return false;
  text.remove_prefix(count);
  return true;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Status wrongAt(int line, std::size_t column, std::string_view what) {
  return errorf(Code::kInvalidArgument, "line {}, column {}: {}", line, column, what);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && isBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && isBlank(text.back())) text.remove_suffix(1);
  return text;
}

Result<std::vector<Cell>> cellsOf(std::string_view line, int number) {
  std::vector<Cell> cells;
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && isBlank(line[at])) ++at;
    Cell cell{"", at + 1};
    if (at < line.size() && line[at] == '"') {
      ++at;
      for (bool closed = false; !closed; ++at) {
        if (at >= line.size()) return wrongAt(number, cell.column, "a quote that is not closed");
        if (line[at] != '"') {
          cell.text += line[at];
        } else if (line.substr(at).starts_with("\"\"")) {
          cell.text += '"';
          ++at;
        } else {
          closed = true;
        }
      }
      while (at < line.size() && isBlank(line[at])) ++at;
      if (at < line.size() && line[at] != ',') {
        return wrongAt(number, at + 1, "text behind a closing quote");
      }
      cell.text = trimmed(cell.text);
    } else {
      const std::size_t end = std::min(line.find(',', at), line.size());
      cell.text = trimmed(line.substr(at, end - at));
      at = end;
    }
    cells.push_back(std::move(cell));
    if (at >= line.size()) return cells;
    ++at;  // the comma
  }
}

std::optional<Date> dateOf(std::string_view text) {
  using std::chrono::sys_days;
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  const bool read = takeDigits(text, 4, year) && take(text, '-') && takeDigits(text, 2, month) &&
                    take(text, '-') && takeDigits(text, 2, day) &&
                    (take(text, ' ') || take(text, 'T')) && takeDigits(text, 2, hour) &&
                    take(text, ':') && takeDigits(text, 2, minute) && take(text, ':') &&
                    takeDigits(text, 2, second);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!read || !date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  double fraction = 0;
  if (take(text, '.')) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits == 0) return std::nullopt;
    double unit = 0.1;
    for (const char c : text.substr(0, digits)) {
      fraction += (c - '0') * unit;
      unit /= 10;
    }
    text.remove_prefix(digits);
  }
  int zoneMinutes = 0;
  if (!take(text, 'Z') && !text.empty()) {
    const bool west = text.front() == '-';
    int hours = 0, minutes = 0;
    if ((!take(text, '+') && !take(text, '-')) || !takeDigits(text, 2, hours)) return std::nullopt;
    if (!text.empty()) {
      (void)take(text, ':');
      if (!takeDigits(text, 2, minutes)) return std::nullopt;
    }
    if (hours > 14 || minutes > 59) return std::nullopt;
    zoneMinutes = (west ? -1 : 1) * (hours * 60 + minutes);
  }
  if (!text.empty()) return std::nullopt;
  const auto days = sys_days(date).time_since_epoch();
  const auto whole =
      std::chrono::seconds(days).count() + hour * 3600 + (minute - zoneMinutes) * 60 + second;
  return Date{whole, fraction};
}

}  // namespace faultline::inference
