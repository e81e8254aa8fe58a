#include "resilient_ccl/plan/port_test.h"

#include <algorithm>
#include <cmath>

namespace faultline::plan {

/// One look at all paths so far; rates are shares of what most ports carry.
class PortTest::Judgement {
 public:
  struct Port {
    double before = 1;
    double fastest = 0;         // that it was seen; 0: never
    std::vector<double> looks{};  // paths whose slowness is its fault
    bool suspect = false;       // a slow path may be its fault

    bool isWhole() const { return fastest >= kFull; }
    bool isKnown() const {
      if (fastest == 0 || isWhole()) return true;
      return !looks.empty() && (!differ(before, share()) || looks.size() >= kLooks);
    }
    /// More than by what measurements differ.
    bool fasterThan(double rate) const { return isWhole() || fastest * kFull > rate; }

    double share() const {
      if (fastest == 0) return before;
      if (isWhole()) return 1;
      double slow = fastest;
      if (looks.size() >= kLooks) {
        std::vector<double> sorted = looks;
        std::ranges::sort(sorted);
        slow = sorted[sorted.size() / 2];
      }
      const double rounded = std::max(1.0, std::round(slow * kSteps)) / kSteps;
      // Neither: all that it was seen with were slow themselves. It is no slower than it was seen.
      return !looks.empty() || suspect ? rounded : std::max(before, rounded);
    }
  };

  Judgement(const std::vector<PortShare>& before, std::vector<Path> paths) {
    for (const PortShare& port : before) {
      send.push_back({.before = port.send});
      receive.push_back({.before = port.receive});
    }
    for (const Path& path : paths) see(path);
    const double typical = this->typical();
    for (auto* side : {&send, &receive}) {
      for (Port& port : *side) port.fastest /= typical;
    }
    for (Path& path : paths) path.rate /= typical;
    for (const Path& path : paths) blame(path);
    for (const Path& path : paths) suspect(path);
  }

  bool allKnown() const {
    return std::ranges::all_of(send, &Port::isKnown) &&
           std::ranges::all_of(receive, &Port::isKnown);
  }

  /// How much would be learnt from these two.
  static int gain(const Port& from, const Port& to) {
    if (from.isKnown() && to.isKnown()) return 0;
    return from.isWhole() || to.isWhole() ? 2 : 1;
  }

  std::vector<Port> send, receive;

 private:
  void see(const Path& path) {
    Port &from = send[path.from], &to = receive[path.to];
    from.fastest = std::max(from.fastest, path.rate);
    to.fastest = std::max(to.fastest, path.rate);
  }

  double typical() const {
    std::vector<double> seen;
    for (const auto* side : {&send, &receive}) {
      for (const Port& port : *side) {
        if (port.fastest > 0) seen.push_back(port.fastest);
      }
    }
    if (seen.empty()) return 1;
    std::ranges::sort(seen);
    const auto most = static_cast<std::size_t>(kMost * static_cast<double>(seen.size()));
    return std::max(kLeastTypical, seen[most]);
  }

  void blame(const Path& path) {
    Port &from = send[path.from], &to = receive[path.to];
    if (path.rate >= kFull) return;
    const bool fromFaster = from.fasterThan(path.rate), toFaster = to.fasterThan(path.rate);
    if (toFaster && !fromFaster) from.looks.push_back(path.rate);
    if (fromFaster && !toFaster) to.looks.push_back(path.rate);
  }

  void suspect(const Path& path) {
    Port &from = send[path.from], &to = receive[path.to];
    if (from.fasterThan(path.rate) || to.fasterThan(path.rate)) return;
    if (from.looks.empty() && to.looks.empty()) from.suspect = to.suspect = true;
  }
};

bool PortTest::differ(double share, double other) {
  return std::abs(share - other) > kOther * std::max(share, other);
}

PortTest::PortTest(std::vector<PortShare> before, int ranksPerNode)
    : before_(std::move(before)), ranksPerNode_(ranksPerNode) {}

std::optional<int> PortTest::nextShift() const {
  const std::size_t ranks = before_.size();
  const Judgement judgement(before_, paths_);
  if (rounds() > 0 && judgement.allKnown()) return std::nullopt;
  std::optional<int> best;
  int most = -1;
  for (int shift = ranksPerNode_; shift < static_cast<int>(ranks); shift += ranksPerNode_) {
    if (std::ranges::find(used_, shift) != used_.end()) continue;
    int gain = 0;
    for (std::size_t from = 0; from < ranks; ++from) {
      const std::size_t to = (from + static_cast<std::size_t>(shift)) % ranks;
      gain += Judgement::gain(judgement.send[from], judgement.receive[to]);
    }
    if (gain <= most) continue;
    most = gain;
    best = shift;
  }
  return best;
}

void PortTest::measured(int shift, const std::vector<double>& rates) {
  used_.push_back(shift);
  const std::size_t ranks = before_.size();
  for (std::size_t to = 0; to < ranks; ++to) {
    if (rates[to] <= 0) continue;
    paths_.push_back({(to + ranks - static_cast<std::size_t>(shift)) % ranks, to, rates[to]});
  }
}

std::vector<PortShare> PortTest::shares() const {
  const Judgement judgement(before_, paths_);
  std::vector<PortShare> shares;
  for (std::size_t rank = 0; rank < before_.size(); ++rank) {
    shares.push_back({judgement.send[rank].share(), judgement.receive[rank].share()});
  }
  return shares;
}

}  // namespace faultline::plan
