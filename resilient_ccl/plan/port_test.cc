#include "resilient_ccl/plan/port_test.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

namespace faultline::plan {

/// One look at all paths so far; rates are shares of what most ports carry.
class PortTest::Judgement {
 public:
  struct Port {
    double before = 1;
    double fastest = 0;           // that it was seen; 0: never
    std::vector<double> looks{};  // paths whose slowness is its fault, about as slow as the fastest
    std::size_t told = 0;         // slow paths whose other end is faster: its fault, or nobody's
    bool suspect = false;         // a slow path may be its fault

    bool isWhole() const { return fastest >= kFull; }
    bool isKnown() const {
      if (fastest == 0 || isWhole()) return true;
      if (looks.empty()) return false;
      return told < kLooks ? !differ(before, share()) : fastestAgree();
    }
    /// What was told of it does not agree: another look over the same paths may settle that. One
    /// look that noise has flattered is no reason for it.
    bool isDisputed() const {
      if (isKnown() || looks.empty()) return false;
      if (told < kLooks) return told > 1 && (looks.size() < told || !alike(0));
      return looks.size() < kLooks || (!alike(0) && !alike(1));
    }
    /// More than by what measurements differ.
    bool fasterThan(double rate) const { return isWhole() || fastest * kFull > rate; }

    /// The second fastest of the paths that agree with the fastest (`blame` leaves the others out):
    /// noise makes paths slower, and hardly ever two of them faster than their port.
    std::optional<double> agreed() const {
      if (looks.size() < kLooks) return std::nullopt;
      return fastestFirst()[1];
    }
    bool fastestAgree() const { return looks.size() >= kLooks && alike(0); }
    /// The look of this place among all, the fastest first, and the next one.
    bool alike(std::size_t place) const {
      const std::vector<double> sorted = fastestFirst();
      return sorted[place + 1] >= kAlike * sorted[place];
    }
    std::vector<double> fastestFirst() const {
      std::vector<double> sorted = looks;
      std::ranges::sort(sorted, std::greater<>());
      return sorted;
    }
    /// Noise may say so, but not so often.
    bool surelySlow() const { return told >= 2 * kLooks && fastest < kSlow; }

    /// What was seen of a port that is slow; nothing: it is not, or nothing that agrees was learnt.
    std::optional<double> slow() const {
      if (fastest == 0 || isWhole()) return std::nullopt;
      if (told < kLooks) return fastest;
      const std::optional<double> alike = agreed();
      if (!alike && !surelySlow()) return std::nullopt;
      return alike.value_or(fastest);
    }
    double share() const {
      const std::optional<double> seen = slow();
      if (!seen) return isWhole() ? 1 : before;
      // Neither: all that it was seen with were slow themselves. It is no slower than it was seen.
      return isBlamed() ? rounded(*seen) : std::max(before, rounded(*seen));
    }
    bool isBlamed() const { return !looks.empty() || suspect; }
    static double rounded(double share) {
      return std::max(1.0, std::round(share * kSteps)) / kSteps;
    }
  };

  /// A port that is about as slow in one direction as in the other is one port with one rate, which
  /// the mean is nearer to than either.
  static PortShare sharesOf(const Port& send, const Port& receive) {
    const std::optional<double> out = send.slow(), in = receive.slow();
    if (out && in && send.isBlamed() && receive.isBlamed() && !differ(*out, *in)) {
      const double both = Port::rounded((*out + *in) / 2);
      return {both, both};
    }
    return {send.share(), receive.share()};
  }

  Judgement(const std::vector<PortShare>& before, std::vector<Path> paths) {
    for (const PortShare& port : before) {
      send.push_back({.before = port.send});
      receive.push_back({.before = port.receive});
    }
    for (const Path& path : paths) see(path);
    typical_ = typical(paths);
    for (auto* side : {&send, &receive}) {
      for (Port& port : *side) port.fastest /= typical_;
    }
    for (Path& path : paths) path.rate /= typical_;
    for (const Path& path : paths) blame(path);
    for (const Path& path : paths) suspect(path);
  }

  bool allKnown() const {
    return std::ranges::all_of(send, &Port::isKnown) &&
           std::ranges::all_of(receive, &Port::isKnown);
  }

  bool anyDisputed() const {
    return std::ranges::any_of(send, &Port::isDisputed) ||
           std::ranges::any_of(receive, &Port::isDisputed);
  }

  /// Most ports carry less than the reference.
  bool allLag() const { return typical_ < kFull; }

  /// How much would be learnt from these two.
  static int gain(const Port& from, const Port& to) {
    if (from.isKnown() && to.isKnown()) return 0;
    return from.isWhole() || to.isWhole() ? 2 : 1;
  }

  /// What most paths carry, as a share of the reference.
  double typicalRate() const { return typical_; }

  std::vector<Port> send, receive;

 private:
  void see(const Path& path) {
    Port &from = send[path.from], &to = receive[path.to];
    from.fastest = std::max(from.fastest, path.rate);
    to.fastest = std::max(to.fastest, path.rate);
  }

  /// The fastest look at a port is one that noise has flattered: so it only says which paths are
  /// whole, and the middle of those is what they carry.
  double typical(const std::vector<Path>& paths) const {
    std::vector<double> seen;
    for (const auto* side : {&send, &receive}) {
      for (const Port& port : *side) {
        if (port.fastest > 0) seen.push_back(port.fastest);
      }
    }
    if (seen.empty()) return 1;
    std::ranges::sort(seen);
    const double whole = seen[static_cast<std::size_t>(kMost * static_cast<double>(seen.size()))];
    std::vector<double> rates;
    for (const Path& path : paths) {
      if (path.rate >= kFull * whole) rates.push_back(path.rate);
    }
    std::ranges::sort(rates);
    return std::max(kLeastTypical, rates[rates.size() / 2]);
  }

  void blame(const Path& path) {
    Port &from = send[path.from], &to = receive[path.to];
    if (path.rate >= kFull) return;
    const bool fromFaster = from.fasterThan(path.rate), toFaster = to.fasterThan(path.rate);
    if (toFaster) ++from.told;
    if (fromFaster) ++to.told;
    if (toFaster && !fromFaster) from.looks.push_back(path.rate);
    if (fromFaster && !toFaster) to.looks.push_back(path.rate);
  }

  void suspect(const Path& path) {
    Port &from = send[path.from], &to = receive[path.to];
    if (from.fasterThan(path.rate) || to.fasterThan(path.rate)) return;
    if (from.looks.empty() && to.looks.empty()) from.suspect = to.suspect = true;
  }

  double typical_ = 1;
};

bool PortTest::differ(double share, double other) {
  return std::abs(share - other) > kOther * std::max(share, other);
}

PortTest::PortTest(std::vector<PortShare> before, int ranksPerNode)
    : ranksPerNode_(static_cast<std::size_t>(ranksPerNode)) {
  const auto parts = static_cast<double>(ranksPerNode);
  for (std::size_t first = 0; first + ranksPerNode_ <= before.size(); first += ranksPerNode_) {
    PortShare node{0, 0};
    for (std::size_t rank = first; rank < first + ranksPerNode_; ++rank) {
      node.send += before[rank].send;
      node.receive += before[rank].receive;
    }
    before_.push_back({node.send / parts, node.receive / parts});
  }
}

/// How much would be learnt. At first glance paths between two slow ports say least.
int PortTest::gain(int shift, const Judgement& judgement) const {
  const std::size_t nodes = before_.size();
  int sum = 0;
  for (std::size_t from = 0; from < nodes; ++from) {
    const std::size_t to = (from + static_cast<std::size_t>(shift)) % nodes;
    if (rounds_ > 0) {
      sum += Judgement::gain(judgement.send[from], judgement.receive[to]);
    } else if (before_[from].send >= 1 || before_[to].receive >= 1) {
      ++sum;
    }
  }
  return sum;
}

std::optional<int> PortTest::nextShift() const {
  const Judgement judgement(before_, paths_);
  if (nothingNew_) return std::nullopt;
  // With slow ranks in the right places every path of one shift is slow, and looks as most do.
  const std::size_t enough = judgement.allLag() ? 2 : 1;
  if (used_.size() >= enough && judgement.allKnown()) return std::nullopt;
  if (used_.size() >= kMostRounds) return std::nullopt;
  struct Round {
    int shift;  // of nodes
    std::ptrdiff_t uses;
    int gain;
  };
  std::optional<Round> best;
  for (int shift = 1; shift < std::ssize(before_); ++shift) {
    const Round round{shift, std::ranges::count(used_, shift), gain(shift, judgement)};
    if (!best || round.uses < best->uses || (round.uses == best->uses && round.gain > best->gain)) {
      best = round;
    }
  }
  if (!best || (best->uses > 0 && !judgement.anyDisputed())) return std::nullopt;
  return best->shift * static_cast<int>(ranksPerNode_);
}

double PortTest::expected(const Path& path) const {
  return std::min(before_[path.from].send, before_[path.to].receive);
}

void PortTest::measured(int shift, const std::vector<double>& rates) {
  const std::size_t ranks = before_.size() * ranksPerNode_;
  const auto parts = static_cast<double>(ranksPerNode_);
  const auto senderTo = [&](std::size_t to) {
    return (to + ranks - static_cast<std::size_t>(shift)) % ranks;
  };
  std::vector<Path> paths;
  for (std::size_t node = 0; node < before_.size(); ++node) {
    const std::size_t first = node * ranksPerNode_;
    const std::span all = std::span(rates).subspan(first, ranksPerNode_);
    if (std::ranges::any_of(all, [](double rate) { return rate <= 0; })) continue;
    paths.push_back({senderTo(first) / ranksPerNode_, node,
                     std::accumulate(all.begin(), all.end(), 0.0) / parts});
  }
  if (++rounds_ == 1) {
    const Judgement glance(before_, paths);
    const double typical = glance.typicalRate();
    nothingNew_ = !glance.allLag() && std::ranges::all_of(paths, [&](const Path& path) {
      const double carried = std::min(1.0, path.rate / typical);
      return std::min(carried, expected(path)) >= kFull * std::max(carried, expected(path));
    });
    return;
  }
  used_.push_back(shift / static_cast<int>(ranksPerNode_));
  std::ranges::move(paths, std::back_inserter(paths_));
  for (std::size_t to = 0; to < ranks; ++to) {
    if (rates[to] > 0 && rates[to] < kFull) slow_.push_back({senderTo(to), to, rates[to]});
  }
}

std::vector<PortTest::Path> PortTest::slowPaths(std::size_t most) const {
  std::vector<Path> slow = slow_;
  std::ranges::stable_sort(slow, {}, &Path::rate);
  slow.resize(std::min(slow.size(), most));
  return slow;
}

std::vector<PortShare> PortTest::shares() const {
  const Judgement judgement(before_, paths_);
  std::vector<PortShare> shares;
  for (std::size_t node = 0; node < before_.size(); ++node) {
    shares.insert(shares.end(), ranksPerNode_,
                  Judgement::sharesOf(judgement.send[node], judgement.receive[node]));
  }
  return shares;
}

}  // namespace faultline::plan
