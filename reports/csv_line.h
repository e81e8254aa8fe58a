#pragma once

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace faultline::reports {

/// One line of comma-separated values as RFC 4180 says, with bare line feeds as line ends.
class CsvLine {
 public:
  void add(const std::string& text);
  void add(const char* text) { add(std::string(text)); }
  void add(std::integral auto number) {
    separate();
    line_ += fmt::format("{}", number);
  }
  /// Numbers that do not exist are empty cells.
  void add(double number) {
    separate();
    if (std::isfinite(number)) line_ += fmt::format("{:.10g}", number);
  }
  void addNothing() { separate(); }

  std::string finish() && { return std::move(line_) + "\n"; }

 private:
  void separate() {
    if (!first_) line_ += ',';
    first_ = false;
  }

  std::string line_;
  bool first_ = true;
};

}  // namespace faultline::reports
