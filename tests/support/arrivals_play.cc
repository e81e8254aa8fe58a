#include "tests/support/arrivals_play.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"
#include "resilient_ccl/channel/arrivals.h"

namespace faultline::test {
namespace {

using channel::Arrivals;

struct Arrival {
  TimePoint when;
  std::uint64_t number;
};

class Path {
 public:
  explicit Path(std::uint64_t seed) : random_(seed) {}

  /// `count` datagrams, of which never so many in a row are lost that it would be an interruption.
  void send(int count) {
    for (int i = 0; i < count; ++i) {
      const bool lost = lostInARow_ + 1 < Arrivals::kLeastGap && random_.below(8) == 0;
      lostInARow_ = lost ? lostInARow_ + 1 : 0;
      next();
      if (lost) continue;
      const std::uint64_t copies = random_.below(4) == 0 ? 2 : 1;
      for (std::uint64_t copy = 0; copy < copies; ++copy) {
        arrivals_.push_back({now_ + upTo(Arrivals::kOrderKept), number_});
      }
    }
  }

  /// All are lost for a while. More than may be overtaken at a time.
  void interrupt() {
    const auto lost = 8 + random_.below(8);
    for (std::uint64_t i = 0; i < lost; ++i) next();
    lostInARow_ = 0;
  }

  /// How many interruptions are seen in what has come in until now.
  std::uint32_t gaps() {
    std::ranges::sort(arrivals_, {}, &Arrival::when);
    for (const Arrival& arrival : arrivals_) seen_.note(arrival.number, arrival.when);
    arrivals_.clear();
    return seen_.gaps();
  }

 private:
  Duration upTo(Duration most) { return Duration(random_.below(most.count())); }
  void next() {
    now_ += 1ms + upTo(2ms);
    ++number_;
  }

  Random random_;
  Arrivals seen_;
  TimePoint now_{};
  std::uint64_t number_ = 0;
  std::uint64_t lostInARow_ = 0;
  std::vector<Arrival> arrivals_;
};

}  // namespace

std::vector<std::string> playArrivals(std::uint64_t seed) {
  constexpr int kDatagrams = 60;
  std::vector<std::string> problems;
  Path path(seed);
  for (std::uint32_t interruptions = 0; interruptions < 3; ++interruptions) {
    path.send(kDatagrams);
    const std::uint32_t seen = path.gaps();
    if (seen != interruptions) {
      problems.push_back(
          fmt::format("{} interruptions of a path are seen in the numbers of its "
                      "datagrams: there were {}",
                      seen, interruptions));
    }
    path.interrupt();
  }
  return problems;
}

}  // namespace faultline::test
