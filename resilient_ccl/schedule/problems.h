#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace faultline::schedule {

/// Something that is wrong with a schedule, and where; -1 where it is in no single one.
struct Problem {
  int rank = -1;
  int lane = -1;
  std::int64_t op = -1;
  std::string text;
};

/// What is wrong with a schedule: the first few are kept, all are counted. A schedule can have as
/// many as the square of its operations.
class Problems {
 public:
  static constexpr std::size_t kUsualMost = 50;
  /// Who compares everything with everything may stop here: more tell nothing new.
  static constexpr std::int64_t kEnough = std::int64_t{1} << 20;

  explicit Problems(std::size_t most = kUsualMost) : most_(most) {}

  /// `make` gives the problem, and is asked only for those that are kept.
  template <typename Make>
  void add(const Make& make) {
    if (kept_.size() < most_) kept_.push_back(make());
    ++count_;
  }

  bool empty() const { return count_ == 0; }
  bool areEnough() const { return count_ >= kEnough; }
  std::int64_t count() const { return count_; }
  const std::vector<Problem>& kept() const { return kept_; }

 private:
  std::size_t most_;
  std::int64_t count_ = 0;
  std::vector<Problem> kept_;
};

}  // namespace faultline::schedule
