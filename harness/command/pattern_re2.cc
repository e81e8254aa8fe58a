#include "harness/command/pattern.h"

#ifdef FAULTLINE_RE2
#include <re2/re2.h>

#include <array>
#endif

namespace faultline::command {

#ifdef FAULTLINE_RE2

namespace {

class Re2Engine final : public PatternEngine {
 public:
  const char* name() const override { return "RE2"; }

  Status check(const std::string& pattern) const override { return compile(pattern).status(); }

  Result<std::vector<double>> numbersIn(std::string_view text,
                                        const std::string& pattern) const override {
    ASSIGN_OR_RETURN(const std::unique_ptr<re2::RE2> compiled, compile(pattern));
    std::vector<double> numbers;
    RETURN_IF_ERROR(forEachLine(
        text, [&](std::string_view line) { return matchesOf(line, *compiled, pattern, numbers); }));
    return numbers;
  }

 private:
  static Result<std::unique_ptr<re2::RE2>> compile(const std::string& pattern) {
    ASSIGN_OR_RETURN(const PatternSyntax syntax, readPattern(pattern));
    re2::RE2::Options options(re2::RE2::Latin1);  // bytes, whatever they are
    options.set_log_errors(false);
    auto compiled = std::make_unique<re2::RE2>(syntax.re2, options);
    if (!compiled->ok()) return Status(Code::kInvalidArgument, compiled->error());
    return compiled;
  }

  static Status matchesOf(std::string_view line, const re2::RE2& compiled,
                          const std::string& pattern, std::vector<double>& numbers) {
    const re2::StringPiece subject(line.data(), line.size());
    std::array<re2::StringPiece, 2> found;  // all of it, and the first group
    for (std::size_t at = 0; at <= line.size();) {
      if (!compiled.Match(subject, at, line.size(), re2::RE2::UNANCHORED, found.data(), 2)) break;
      const std::string_view group(found[1].data(), found[1].size());
      ASSIGN_OR_RETURN(const double number, numberOfGroup(group, pattern));
      numbers.push_back(number);
      const auto end = static_cast<std::size_t>(found[0].data() - line.data()) + found[0].size();
      at = found[0].empty() ? end + 1 : end;
    }
    return okStatus();
  }
};

}  // namespace

std::unique_ptr<PatternEngine> makeRe2Engine() { return std::make_unique<Re2Engine>(); }

#else

std::unique_ptr<PatternEngine> makeRe2Engine() { return nullptr; }

#endif

}  // namespace faultline::command
