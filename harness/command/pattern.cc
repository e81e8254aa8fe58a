#include "harness/command/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace faultline::command {
namespace {

bool isLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::string byteInHex(unsigned value) { return fmt::format("\\x{:02x}", value); }

/// Goes through a pattern once: refuses what needs more than linear time, and says the rest in the
/// words of RE2 where those differ from ECMAScript's.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<PatternSyntax> run() {
    while (at_ < pattern_.size()) {
      switch (pattern_[at_]) {
        case '\\':
          RETURN_IF_ERROR(escape(/*inClass=*/false));
          break;
        case '(':
          RETURN_IF_ERROR(group());
          break;
        case '[':
          RETURN_IF_ERROR(characterClass());
          break;
        case '.':  // of a line that ends with CR LF, not the CR
          out_ += "[^\\n\\r]";
          ++at_;
          break;
        default:
          out_ += pattern_[at_++];
      }
    }
    return PatternSyntax{groups_, std::move(out_)};
  }

 private:
  Status wrong(std::size_t where, std::string_view what) const {
    return errorf(Code::kInvalidArgument, "at character {}: {}", where + 1, what);
  }
  bool follows(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  Status group() {
    if (!follows("(?")) {
      ++groups_;
      out_ += pattern_[at_++];
      return okStatus();
    }
    if (follows("(?:")) {
      out_ += "(?:";
      at_ += 3;
      return okStatus();
    }
    if (follows("(?=") || follows("(?!") || follows("(?<=") || follows("(?<!")) {
      return wrong(at_,
                   "look-arounds such as (?=...) are not possible: match what is around, and "
                   "put the group around the number alone");
    }
    return wrong(at_, "of the groups with (? only (?:...) is possible");
  }

  /// A number of hexadecimal digits behind `\x` or `\u`; -1 where they are not there.
  int hexDigits(std::size_t first, std::size_t count) const {
    unsigned value = 0;
    const std::string_view digits = pattern_.substr(std::min(first, pattern_.size()), count);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    const bool all = error == std::errc() && end == digits.data() + count;
    return all && digits.size() == count ? static_cast<int>(value) : -1;
  }

  Status escape(bool inClass) {
    const std::size_t begin = at_++;
    if (at_ == pattern_.size()) return wrong(begin, "a '\\' with nothing behind it");
    const char c = pattern_[at_++];
    switch (c) {
      case 'd':
      case 'D':
      case 'w':
      case 'W':
      case 'f':
      case 'n':
      case 'r':
      case 't':
      case 'v':
        out_ += {'\\', c};
        return okStatus();
      case 's':  // RE2's has no vertical tab
        out_ += inClass ? "\\s\\v" : "[\\s\\v]";
        return okStatus();
      case 'S':
        out_ += inClass ? "\\S" : "[^\\s\\v]";
        return okStatus();
      case 'b':
        out_ += inClass ? "\\x08" : "\\b";
        return okStatus();
      case 'B':
        if (inClass) return wrong(begin, "\\B has no meaning in [...]");
        out_ += "\\B";
        return okStatus();
      case '0':
        out_ += "\\x00";
        return okStatus();
      case 'c':
        if (at_ == pattern_.size()) return wrong(begin, "\\c needs a letter behind it");
        out_ += byteInHex(static_cast<unsigned char>(pattern_[at_++]) % 32);
        return okStatus();
      case 'x':
      case 'u': {
        const std::size_t count = c == 'x' ? 2 : 4;
        const int value = hexDigits(at_, count);
        if (value < 0)
          return wrong(begin, fmt::format("\\{} needs {} hexadecimal digits", c, count));
        if (value > 0xff) return wrong(begin, "no byte; write the character itself");
        out_ += byteInHex(static_cast<unsigned>(value));
        at_ += count;
        return okStatus();
      }
      default:
        break;
    }
    if (c >= '1' && c <= '9') {
      return wrong(begin, fmt::format("a back reference (\\{}) is not possible: no engine follows "
                                      "them in linear time",
                                      c));
    }
    if (isLetterOrDigit(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80) {
      out_ += c;
    } else {
      out_ += {'\\', c};
    }
    return okStatus();
  }

  Status characterClass() {
    const std::size_t begin = at_++;
    const bool negated = at_ < pattern_.size() && pattern_[at_] == '^';
    if (negated) ++at_;
    if (at_ < pattern_.size() && pattern_[at_] == ']') {  // ECMAScript: empty
      out_ += negated ? "[\\x00-\\xff]" : "[^\\x00-\\xff]";
      ++at_;
      return okStatus();
    }
    out_ += negated ? "[^" : "[";
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == ']') {
        out_ += pattern_[at_++];
        return okStatus();
      }
      if (c == '\\') {
        RETURN_IF_ERROR(escape(/*inClass=*/true));
      } else if (follows("[.") || follows("[=")) {
        return wrong(at_, "[. and [= are not possible in [...]");
      } else if (follows("[:")) {
        const std::size_t end = pattern_.find(":]", at_);
        if (end == std::string_view::npos) return wrong(at_, "a [: that is not closed");
        out_ += pattern_.substr(at_, end + 2 - at_);
        at_ = end + 2;
      } else if (c == '[') {
        out_ += "\\[";
        ++at_;
      } else {
        out_ += c;
        ++at_;
      }
    }
    return wrong(begin, "a [ that is not closed");
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  int groups_ = 0;
  std::string out_;
};

}  // namespace

Result<PatternSyntax> readPattern(std::string_view pattern) {
  if (pattern.size() > kLongestPattern) {
    return errorf(Code::kInvalidArgument, "it has {} bytes, and {} are possible", pattern.size(),
                  kLongestPattern);
  }
  return Translator(pattern).run();
}

const PatternEngine& patternEngine() {
  static const std::unique_ptr<PatternEngine> engine = [] {
    auto linear = makeRe2Engine();
    return linear != nullptr ? std::move(linear) : makeChildEngine();
  }();
  return *engine;
}

Status forEachLine(std::string_view text, const std::function<Status(std::string_view)>& match) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    RETURN_IF_ERROR(match(text.substr(0, std::min(end, kLongestLine))));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return okStatus();
}

Result<double> numberOfGroup(std::string_view group, std::string_view pattern) {
  std::string_view digits = group;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double number = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, number);
  if (error == std::errc() && end == last && std::isfinite(number)) return number;
  return errorf(Code::kInvalidArgument, "'{}' matches '{}', which is no number", pattern, group);
}

}  // namespace faultline::command
