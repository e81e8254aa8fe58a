#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "resilient_ccl/nccl/pair.h"

namespace faultline::nccl {

/// What a process has done with each of its peers: the latest ones, as a job that makes its
/// communicators anew for weeks has any number of them.
struct Accounts {
  std::deque<Pair::Account> latest;
  std::uint64_t dropped = 0;         ///< earlier ones, for which there was no room
  std::uint64_t callersRefused = 0;  ///< `Door::refused`
  std::uint64_t answersRefused = 0;  ///< `Attempts::refused`

  static constexpr std::size_t kMost = 1024;

  /// Behind those that there are.
  void add(Pair::Account one) {
    latest.push_back(std::move(one));
    for (; latest.size() > kMost; latest.pop_front()) ++dropped;
  }
  void add(Accounts more) {
    dropped += more.dropped;
    callersRefused += more.callersRefused;
    answersRefused += more.answersRefused;
    for (Pair::Account& one : more.latest) add(std::move(one));
  }
};

}  // namespace faultline::nccl
