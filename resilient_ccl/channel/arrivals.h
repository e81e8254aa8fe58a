#pragma once

#include <cstdint>

#include "base/clock.h"

namespace faultline::channel {

/// Sees in the numbers of the datagrams of one path and direction that the path was interrupted:
/// some in a row are missing. One alone may be lost at any time, and what is overtaken still comes.
/// Pure; times are handed in.
class Arrivals {
 public:
  /// So many in a row.
  static constexpr std::uint64_t kLeastGap = 3;
  /// What is overtaken by less is only late. As long as nothing newer comes nothing is lost: what
  /// waits in the socket of a process that stood still has not been read yet.
  static constexpr Duration kOrderKept = 4ms;

  /// The datagram with `number`, from 1, has come in. A second time, and it changes nothing.
  void note(std::uint64_t number, TimePoint now) {
    if (number > newest_) {
      if (open_ && now - seen_ >= kOrderKept) {
        ++gaps_;
        open_ = false;
      }
      const std::uint64_t missing = number - newest_ - 1;
      if (!open_ && missing >= kLeastGap) {
        open_ = true;
        begin_ = newest_ + 1;
        end_ = number;
        seen_ = now;
      }
      newest_ = number;
    } else if (number >= begin_ && number < end_) {
      // What is missing on one side of it may be lost all the same.
      if (number - begin_ >= end_ - number) {
        end_ = number;
      } else {
        begin_ = number + 1;
      }
      open_ = open_ && end_ - begin_ >= kLeastGap;
    }
  }

  /// How many times the path was interrupted.
  std::uint32_t gaps() const { return gaps_; }
  /// The same with what may still come.
  std::uint32_t possibleGaps() const { return gaps_ + (open_ ? 1 : 0); }

 private:
  std::uint64_t newest_ = 0;
  std::uint32_t gaps_ = 0;
  bool open_ = false;
  std::uint64_t begin_ = 0, end_ = 0;  // of the latest gap
  TimePoint seen_{};                   // the first after it
};

}  // namespace faultline::channel
