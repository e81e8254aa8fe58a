#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "base/random.h"
#include "resilient_ccl/schedule/port_simulator.h"

namespace faultline::schedule {
namespace {

using Transfer = PortSimulator::Transfer;

/// The same network in the plainest way: at every event all rates anew, by letting all grow until a
/// port is full, again and again.
class PlainPorts {
 public:
  PlainPorts(const PortBandwidths& bandwidths, std::vector<double> links)
      : bandwidths_(bandwidths), links_(std::move(links)) {}

  void add(const Transfer& transfer, double time) {
    moveTo(time);
    streams_[transfer.stream].push_back({transfer, transfer.size});
    Moving& added = streams_[transfer.stream].back();
    added.left += transfer.overhead * alone(transfer);
  }

  double nextTime() {
    fill();
    double next = std::numeric_limits<double>::infinity();
    for (const auto& [stream, queue] : streams_) {
      next = std::min(next, now_ + queue.front().left / queue.front().rate);
    }
    return next;
  }

  /// Ids and the time at which they finish, together.
  std::pair<std::vector<int>, double> takeNext() {
    constexpr double kSameInstant = 1e-9;
    const double time = nextTime();
    moveTo(time);
    std::vector<int> ids;
    for (auto stream = streams_.begin(); stream != streams_.end();) {
      Moving& first = stream->second.front();
      if (first.left <= kSameInstant * first.rate) {
        ids.push_back(first.transfer.id);
        stream->second.erase(stream->second.begin());
      }
      stream = stream->second.empty() ? streams_.erase(stream) : std::next(stream);
    }
    std::sort(ids.begin(), ids.end());
    return {ids, time};
  }

  bool empty() const { return streams_.empty(); }

 private:
  struct Moving {
    Transfer transfer;
    double left;
    double rate = 0;
  };

  void moveTo(double time) {
    fill();
    for (auto& [stream, queue] : streams_) queue.front().left -= queue.front().rate * (time - now_);
    now_ = time;
  }

  double alone(const Transfer& t) const {
    const double ports = std::min(bandwidths_.send[t.from], bandwidths_.receive[t.to]);
    return t.link < 0 ? ports : std::min(ports, links_[t.link]);
  }

  void fill() {
    std::vector<Moving*> growing;
    for (auto& [stream, queue] : streams_) {
      queue.front().rate = 0;
      growing.push_back(&queue.front());
    }
    std::vector<Moving*> all = growing;
    const auto used = [&](auto&& matches) {
      double sum = 0;
      for (const Moving* m : all) sum += matches(m->transfer) ? m->rate : 0;
      return sum;
    };
    const auto room = [&](const Transfer& t) {
      std::vector<std::pair<double, int>> rooms;  // and how many still grow there
      const auto look = [&](double capacity, auto&& matches) {
        const auto count = std::count_if(growing.begin(), growing.end(),
                                         [&](const Moving* m) { return matches(m->transfer); });
        rooms.push_back({capacity - used(matches), static_cast<int>(count)});
      };
      look(bandwidths_.send[t.from], [&](const Transfer& o) { return o.from == t.from; });
      look(bandwidths_.receive[t.to], [&](const Transfer& o) { return o.to == t.to; });
      if (t.link >= 0) look(links_[t.link], [&](const Transfer& o) { return o.link == t.link; });
      double least = std::numeric_limits<double>::infinity();
      for (const auto& [left, count] : rooms) least = std::min(least, left / std::max(count, 1));
      return least;
    };
    while (!growing.empty()) {
      double step = std::numeric_limits<double>::infinity();
      for (const Moving* m : growing) step = std::min(step, room(m->transfer));
      for (Moving* m : growing) m->rate += std::max(step, 0.0);
      std::vector<Moving*> rest;
      for (Moving* m : growing) {
        if (room(m->transfer) > 1e-11) rest.push_back(m);
      }
      growing = rest;
    }
  }

  PortBandwidths bandwidths_;
  std::vector<double> links_;
  std::map<std::int64_t, std::vector<Moving>> streams_;
  double now_ = 0;
};

TEST(FluidPortsProperty, FinishesWhatAndWhenThePlainWayDoes) {
  constexpr double kExact = 1e-7;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto ranks = 2 + random.below(5);
    const auto bandwidth = [&] { return (1 + static_cast<double>(random.below(8))) / 8; };
    PortBandwidths ports;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      ports.send.push_back(bandwidth());
      ports.receive.push_back(bandwidth());
    }
    std::vector<double> links;
    if (random.below(3) == 0) {
      for (std::uint64_t i = 0; i < ranks * ranks; ++i) links.push_back(bandwidth());
    }
    const auto simulator = makePortSimulator(PortModel::kFluid, ports, links);
    PlainPorts plain(ports, links);
    double now = 0;
    int id = 0, finished = 0;
    while (id < 40 || finished < id) {
      if (id < 40 && (finished == id || random.below(2) == 0)) {
        const int from = static_cast<int>(random.below(ranks));
        const int to = static_cast<int>((from + 1 + random.below(ranks - 1)) % ranks);
        const int pair = from * static_cast<int>(ranks) + to;
        // Half of all ends are at the same instant as others.
        const double size = random.below(2) == 0 ? 0.5 : 0.1 + random.unit();
        const Transfer transfer{.id = id++,
                                .from = from,
                                .to = to,
                                .size = size,
                                .overhead = random.below(2) == 0 ? 0.0 : 0.05,
                                .stream = 2 * pair + static_cast<int>(random.below(2)),
                                .link = links.empty() ? -1 : pair};
        simulator->add(transfer, now);
        plain.add(transfer, now);
        continue;
      }
      const auto [ids, time] = plain.takeNext();
      std::vector<int> got;
      // What is one instant here may be a few there.
      while (got.size() < ids.size()) {
        ASSERT_NEAR(*simulator->nextTime(), time, kExact);
        for (const auto& each : simulator->takeNext()) {
          got.push_back(each.id);
          now = std::max(now, each.time);
        }
      }
      now = std::max(now, time);
      std::sort(got.begin(), got.end());
      ASSERT_EQ(got, ids);
      finished += static_cast<int>(ids.size());
    }
    ASSERT_TRUE(plain.empty());
    ASSERT_FALSE(simulator->nextTime());
  }
}

}  // namespace
}  // namespace faultline::schedule
