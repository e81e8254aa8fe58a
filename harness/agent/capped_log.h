#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace faultline::agent {

/// What is passed on of all that a process logs, so that one which never stops fills no disk: the
/// beginning at once, the last of it at the end, and how much is missing between them. Pure.
class CappedLog {
 public:
  static constexpr std::size_t kBeginning = 256 << 10;
  static constexpr std::size_t kEnd = 32 << 10;
  /// What a line costs besides its bytes: where it comes from is written in front of it.
  static constexpr std::size_t kLineCost = 32;

  /// What of it is passed on now.
  std::string_view add(std::string_view bytes);
  /// What is passed on when nothing comes any more.
  std::string rest() const;

 private:
  std::size_t left_ = kBeginning;
  std::string end_;           // at most twice kEnd
  std::uint64_t behind_ = 0;  // bytes behind the beginning
};

}  // namespace faultline::agent
