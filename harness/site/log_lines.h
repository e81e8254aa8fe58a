#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace faultline::site {

/// Makes lines of what a process on another machine has logged, which comes in pieces: each with
/// where it comes from in front, as a terminal may get it, and cut where it is too long. Pure.
class LogLines {
 public:
  /// In bytes as they come; what is behind is left out.
  static constexpr std::size_t kLongest = 2000;

  /// `origin`: "n1 rank 3 (job 7): ", in front of each line.
  explicit LogLines(std::string origin = "") : origin_(std::move(origin)) {}

  /// The lines that are whole now.
  std::string add(std::string_view text);
  /// The last one, which has no end of its own; empty: there is none.
  std::string end();

 private:
  void take(std::string_view text);
  std::string line();

  std::string origin_;
  std::string begun_;  // of a line
  bool cut_ = false;
};

}  // namespace faultline::site
