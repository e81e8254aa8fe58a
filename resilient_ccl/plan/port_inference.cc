#include "resilient_ccl/plan/port_inference.h"

#include <algorithm>
#include <cmath>

namespace faultline::plan {

struct PortInference::Path {
  std::size_t from, to;
};

/// One look at everything; all shares are of the live rails of their port.
class PortInference::Judgement {
 public:
  Judgement(const std::vector<Observation>& seen, const std::vector<Port>& before)
      : seen_(seen), before_(before), fastest_(seen.size(), Port{0, 0}), blamed_(seen.size()) {
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      for (const PathRate& path : seen_[rank].paths) {
        Port& fastest = fastest_[rank];
        fastest.send = std::max(fastest.send, share(path.send, rank));
        fastest.receive = std::max(fastest.receive, share(path.receive, rank));
      }
    }
    full_ = fullShare();
    for (std::size_t from = 0; from < ranks(); ++from) {
      for (std::size_t to = 0; to < ranks(); ++to) {
        if (from != to && isSlow(from, to)) slow_.push_back({from, to});
      }
    }
  }

  void blame() {
    // First where there is no choice.
    for (std::size_t rank = 0; rank < ranks(); ++rank) blameIfMostAgree(rank);
    for (const Path& path : slow_) {
      if (explained(path)) continue;
      const bool send = maySend(path.from), receive = mayReceive(path.to);
      if (send && !receive) blamed_[path.from].send = true;
      if (receive && !send) blamed_[path.to].receive = true;
    }
    for (;;) {
      std::vector<int> explains(ranks());
      for (const Path& path : slow_) {
        if (explained(path)) continue;
        if (maySend(path.from)) ++explains[path.from];
        if (mayReceive(path.to)) ++explains[path.to];
      }
      // Among equals who was slow before, then the lowest: all the same, but always the same.
      const auto better = [&](std::size_t a, std::size_t b) {
        if (explains[a] != explains[b]) return explains[a] > explains[b];
        return wasSlow(a) && !wasSlow(b);
      };
      std::size_t best = 0;
      for (std::size_t rank = 1; rank < ranks(); ++rank) {
        if (better(rank, best)) best = rank;
      }
      if (ranks() == 0 || explains[best] == 0) return;
      for (const Path& path : slow_) {
        if (explained(path)) continue;
        if (path.from == best && maySend(best)) blamed_[best].send = true;
        if (path.to == best && mayReceive(best)) blamed_[best].receive = true;
      }
    }
  }

  Port after(std::size_t rank) const {
    return {side(blamed_[rank].send, fastest_[rank].send, before_[rank].send),
            side(blamed_[rank].receive, fastest_[rank].receive, before_[rank].receive)};
  }

 private:
  struct Blame {
    bool send = false;
    bool receive = false;
  };

  std::size_t ranks() const { return seen_.size(); }
  double live(std::size_t rank) const { return fraction(seen_[rank].live); }
  double share(std::uint16_t parts, std::size_t rank) const { return fraction(parts) / live(rank); }
  PathRate rate(std::size_t at, std::size_t other) const {
    return other < seen_[at].paths.size() ? seen_[at].paths[other] : PathRate{};
  }

  double fullShare() const {
    std::vector<double> known;
    for (const Port& port : fastest_) {
      for (const double share : {port.send, port.receive}) {
        if (share > 0) known.push_back(std::min(share, 1.0));
      }
    }
    if (known.empty()) return kFull;
    std::ranges::sort(known);
    const auto most = static_cast<std::size_t>(kMost * static_cast<double>(known.size()));
    return std::max(kLeastFull, kFull * known[std::min(most, known.size() - 1)]);
  }

  bool isSlow(std::size_t from, std::size_t to) const {
    const std::uint16_t sent = rate(from, to).send, received = rate(to, from).receive;
    // Nothing known; or all that the rails which both have can carry; or the receiver was busy.
    return sent != 0 && fraction(sent) < full_ * std::min(live(from), live(to)) &&
           share(received, to) < full_;
  }
  /// The fastest of the paths to, and from, a rank.
  std::uint16_t fastestOut(std::size_t from) const {
    std::uint16_t most = 0;
    for (std::size_t to = 0; to < ranks(); ++to) most = std::max(most, rate(from, to).own);
    return most;
  }
  std::uint16_t fastestIn(std::size_t to) const {
    std::uint16_t most = 0;
    for (std::size_t from = 0; from < ranks(); ++from) most = std::max(most, rate(from, to).own);
    return most;
  }
  static bool farBelow(std::uint16_t one, std::uint16_t other) { return one < kFair * other; }

  void blameIfMostAgree(std::size_t rank) {
    int out = 0, outSlow = 0, in = 0, inSlow = 0;
    for (std::size_t other = 0; other < ranks(); ++other) {
      if (const std::uint16_t own = rate(rank, other).own; own != 0) {
        ++out;
        if (farBelow(own, fastestIn(other))) ++outSlow;
      }
      if (const std::uint16_t own = rate(other, rank).own; own != 0) {
        ++in;
        if (farBelow(own, fastestOut(other))) ++inSlow;
      }
    }
    const auto most = [](int slow, int all) { return slow >= 2 && 2 * slow > all; };
    if (maySend(rank) && fastest_[rank].send > 0 && most(outSlow, out)) blamed_[rank].send = true;
    if (mayReceive(rank) && fastest_[rank].receive > 0 && most(inSlow, in)) {
      blamed_[rank].receive = true;
    }
  }

  bool maySend(std::size_t rank) const { return fastest_[rank].send < full_; }
  /// One of which nothing is known now may still be as slow as it was.
  bool mayReceive(std::size_t rank) const {
    const double fastest = fastest_[rank].receive;
    return fastest == 0 ? before_[rank].receive < 1 : fastest < full_;
  }
  bool explained(const Path& path) const {
    return blamed_[path.from].send || blamed_[path.to].receive;
  }
  bool wasSlow(std::size_t rank) const {
    return before_[rank].send < 1 || before_[rank].receive < 1;
  }

  double side(bool blamed, double fastest, double before) const {
    if (fastest == 0) return before;
    if (fastest >= full_) return 1;
    const double rounded = std::max(1.0, std::round(fastest * kSteps)) / kSteps;
    // Not blamed: it may have had less to do than it can. It is no slower than it was seen.
    return blamed ? rounded : std::max(before, rounded);
  }

  const std::vector<Observation>& seen_;
  const std::vector<Port>& before_;
  std::vector<Port> fastest_;  // 0: not known
  double full_ = kFull;        // share from which on a port is whole
  std::vector<Path> slow_;
  std::vector<Blame> blamed_;
};

PortInference::PortInference(int ranks) : ports_(static_cast<std::size_t>(ranks)) {}

HealthVector PortInference::infer(const std::vector<Observation>& seen) {
  std::vector<Observation> all = seen;
  all.resize(ports_.size());
  Judgement judgement(all, ports_);
  judgement.blame();
  HealthVector health;
  std::vector<Port> ports;
  for (std::size_t rank = 0; rank < ports_.size(); ++rank) {
    const Port& port = ports.emplace_back(judgement.after(rank));
    const double live = fraction(all[rank].live);
    health.push_back(
        {.send = quantise(live * port.send), .receive = quantise(live * port.receive)});
  }
  ports_ = std::move(ports);
  return health;
}

}  // namespace faultline::plan
