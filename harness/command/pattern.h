#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

/// Regular expressions of users, put to what programs print. Neither the one nor the other is to
/// be trusted with our time: a pattern is matched in linear time, or in a process that is killed
/// when its time is over.
namespace faultline::command {

/// Longer ones are refused.
inline constexpr std::size_t kLongestPattern = 1024;
/// Longer lines are not looked at beyond this.
inline constexpr std::size_t kLongestLine = 4096;
/// How long all the text of a metric may take where matching is not linear.
inline constexpr int kPatternTimeLimitMs = 5000;

/// What every engine understands: ECMAScript without back references and look-arounds.
struct PatternSyntax {
  int groups = 0;   ///< that capture
  std::string re2;  ///< the same in the words of RE2, for bytes
};

/// kInvalidArgument, with the character, for what no engine is to get.
Result<PatternSyntax> readPattern(std::string_view pattern);

/// A way to match patterns.
class PatternEngine {
 public:
  virtual ~PatternEngine() = default;
  virtual const char* name() const = 0;
  /// Whether it is a regular expression.
  virtual Status check(const std::string& pattern) const = 0;
  /// The numbers in the first group, of every match in every line of a text. kInvalidArgument when
  /// one is no number, kDeadlineExceeded when it takes too long.
  virtual Result<std::vector<double>> numbersIn(std::string_view text,
                                                const std::string& pattern) const = 0;
};

/// RE2: linear time. Null in a build without it.
std::unique_ptr<PatternEngine> makeRe2Engine();
/// The standard library's, whose time can be exponential, in a process of its own.
std::unique_ptr<PatternEngine> makeChildEngine(int timeLimitMs = kPatternTimeLimitMs);
/// The best that this build has.
const PatternEngine& patternEngine();

/// Calls `match` for each line, without its end and cut at kLongestLine, until it fails.
Status forEachLine(std::string_view text, const std::function<Status(std::string_view)>& match);

/// What a group has matched, as a number.
Result<double> numberOfGroup(std::string_view group, std::string_view pattern);

}  // namespace faultline::command
