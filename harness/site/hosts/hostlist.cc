#include "harness/site/hosts/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace faultline::hosts {
namespace {

constexpr std::size_t kMostDigits = 18;  // of a number

std::optional<std::uint64_t> numberOf(std::string_view digits) {
  std::uint64_t number = 0;
  if (digits.empty() || digits.size() > kMostDigits) return std::nullopt;
  const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || at != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// "01-03,7": the numbers between brackets.
Result<std::vector<std::string>> numbersOf(std::string_view ranges) {
  std::vector<std::string> numbers;
  for (bool more = true; more;) {
    const std::size_t comma = ranges.find(',');
    const std::string_view range = ranges.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) ranges.remove_prefix(comma + 1);
    const std::string_view low = range.substr(0, range.find('-'));
    const auto first = numberOf(low);
    const auto last = low.size() == range.size() ? first : numberOf(range.substr(low.size() + 1));
    if (!first || !last || *last < *first) {
      return errorf(Code::kInvalidArgument, "'{}' is no range of numbers", range);
    }
    if (*last - *first >= kMostExpanded - numbers.size()) {
      return errorf(Code::kInvalidArgument, "more than {} names", kMostExpanded);
    }
    for (std::uint64_t number = *first; number <= *last; ++number) {
      numbers.push_back(fmt::format("{:0{}}", number, low.size()));
    }
  }
  return numbers;
}

/// Continues each of the names with each of the endings.
Status continueWith(const std::vector<std::string>& endings, std::vector<std::string>& names) {
  if (endings.size() > kMostExpanded / names.size()) {
    return errorf(Code::kInvalidArgument, "more than {} names", kMostExpanded);
  }
  std::vector<std::string> longer;
  for (const std::string& name : names) {
    for (const std::string& ending : endings) longer.push_back(name + ending);
  }
  names = std::move(longer);
  return okStatus();
}

/// One word: "rack[1-2]n[01-03,7]".
Result<std::vector<std::string>> expandWord(std::string_view word) {
  std::vector<std::string> names{""};
  while (!word.empty()) {
    const std::string_view plain = word.substr(0, word.find_first_of("[]"));
    RETURN_IF_ERROR(continueWith({std::string(plain)}, names));
    word.remove_prefix(plain.size());
    if (word.empty()) break;
    const std::size_t end = word.find(']');
    if (word.front() != '[' || end == std::string_view::npos) {
      return errorf(Code::kInvalidArgument, "brackets are not in pairs");
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> numbers, numbersOf(word.substr(1, end - 1)));
    RETURN_IF_ERROR(continueWith(numbers, names));
    word.remove_prefix(end + 1);
  }
  return names;
}

/// The length of the first word: up to a comma that is not between brackets.
std::size_t firstWord(std::string_view list) {
  bool inside = false;
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (list[at] == '[') inside = true;
    if (list[at] == ']') inside = false;
    if (list[at] == ',' && !inside) return at;
  }
  return list.size();
}

}  // namespace

Result<std::vector<std::string>> expandHostlist(std::string_view list) {
  std::vector<std::string> names;
  const auto context = [list](const Status& status) {
    return status.withContext(fmt::format("list of hosts '{}'", list));
  };
  for (std::string_view rest = list; !rest.empty();) {
    const std::string_view word = rest.substr(0, firstWord(rest));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word.empty()) continue;
    const auto more = expandWord(word);
    if (!more.ok()) return context(more.status());
    if (more->size() > kMostExpanded - names.size()) {
      return context(errorf(Code::kInvalidArgument, "more than {} names", kMostExpanded));
    }
    names.insert(names.end(), more->begin(), more->end());
  }
  return names;
}

}  // namespace faultline::hosts
