#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/scenario/document.h"

namespace faultline::scenario {

/// Collects mistakes, and remembers which parts of the scenario cannot be relied on, so that one
/// mistake is not followed by others that only come from it.
class Findings {
 public:
  void add(Location where, std::string message) {
    problems_.push_back({where, std::move(message)});
  }

  /// A mistake in the value at `path`: whatever depends on it is not checked any more.
  void addAt(const std::string& path, Location where, std::string message) {
    distrust(path);
    add(where, std::move(message));
  }

  /// Says that the value at `path` cannot be relied on; the reason is already told.
  void distrust(const std::string& path) { unusable_.insert(path); }

  /// None of the paths, nor anything that they are part of, has a mistake.
  bool usable(std::initializer_list<std::string_view> paths) const {
    if (unusable_.count("") != 0) return false;  // nothing at all can be relied on
    for (std::string_view path : paths) {
      while (true) {
        if (unusable_.count(path) != 0) return false;
        const std::size_t dot = path.rfind('.');
        if (dot == std::string_view::npos) break;
        path = path.substr(0, dot);
      }
    }
    return true;
  }

  std::vector<Problem>& problems() { return problems_; }

 private:
  std::vector<Problem> problems_;
  std::set<std::string, std::less<>> unusable_;
};

}  // namespace faultline::scenario
