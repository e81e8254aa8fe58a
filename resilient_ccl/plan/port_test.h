#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace faultline::plan {

/// What is left of a port's live rails, as a share of what most ports carry.
struct PortShare {
  double send = 1;
  double receive = 1;

  bool operator==(const PortShare&) const = default;
};

/// Finds slow ports from rounds in which every rank sends to one rank and receives from another,
/// all at once: rank i to rank i + shift. Such paths share no port, so each carries exactly what
/// the slower of its two ports can. The first round is a glance: when every path carries about what
/// was known of its ports there is no other. Else it is forgotten, and what counts are the rounds
/// after it, which may take longer and be exact. In them a port is at least as fast as it was seen;
/// a slow path one of whose ends was seen to be faster is the other's fault. There is another
/// round, with the shift that tells most, while there is a port that has neither been seen whole
/// nor been found guilty, on enough paths where that is new, because processors that are shared
/// make single ones look slow. Where all shifts have been used and what was told of a port does not
/// agree they come again, those used least first. So there is one round where nothing is new, two
/// to four where something is, one more for each path that does not agree with the others of its
/// port, and never more than the glance and kMostRounds. Pure.
class PortTest {
 public:
  /// A port that carries this share of what most carry is whole.
  static constexpr double kFull = 0.85;
  /// What most carry: about what so many of the ports do not exceed, but not less than this share
  /// of the reference. Where processors cannot keep up all ports carry less, and none is slow.
  static constexpr double kMost = 0.75;
  static constexpr double kLeastTypical = 0.7;
  /// Shares of slow ports are rounded to one of so many steps.
  static constexpr int kSteps = 64;

  /// A port is slower than before, or less slow, when so many paths say so, and about the same (to
  /// kFull), if there are as many; then it is what the second fastest says. While that is less than
  /// kAlike of what the fastest says there is another round.
  /// One that twice as many have seen, and none as faster than kSlow, is what the fastest says.
  static constexpr std::size_t kLooks = 3;
  static constexpr double kAlike = 0.94;
  static constexpr double kSlow = 0.6;
  /// After the glance. A look that somebody's processor made slow needs a round more.
  static constexpr std::size_t kMostRounds = 8;
  /// A share that differs by so much is another.
  static constexpr double kOther = 0.1;

  /// `before`: by rank, what was known; it stays for ports of which nothing is learnt.
  /// `ranksPerNode` ranks in a row share their NICs: they all send to the same node, and what is
  /// judged is what they carry together. They share a port as they come (half of one as 0.56 and
  /// 0.39), so each is said to have its equal part of the node's.
  PortTest(std::vector<PortShare> before, int ranksPerNode);

  /// The shift of the next round, one that was used before where looks do not agree; nothing: all
  /// is known, or no further round would tell.
  std::optional<int> nextShift() const;
  /// What came of the round of `nextShift`: by receiving rank, what the path to it carried as a
  /// share of the reference, that of an equal part where ranks share a port; 0: not known. Nothing
  /// is learnt of a node of which not all paths are known.
  void measured(int shift, const std::vector<double>& rates);

  int rounds() const { return rounds_; }
  /// What a path carried in a round that counts, as a share of the reference.
  struct Path {
    std::size_t from, to;  ///< ranks
    double rate;
  };
  /// Those between ranks that carried less than kFull, the slowest first, at most so many.
  std::vector<Path> slowPaths(std::size_t most) const;
  /// By rank.
  std::vector<PortShare> shares() const;
  static bool differ(double share, double other);

 private:
  class Judgement;

  int gain(int shift, const Judgement& judgement) const;
  double expected(const Path& path) const;

  // What nodes have is the mean of their ranks'.
  std::size_t ranksPerNode_;
  std::vector<PortShare> before_;  // by node
  int rounds_ = 0;
  bool nothingNew_ = false;  // the glance says so
  std::vector<int> used_;    // shifts of the rounds that count, in order, in nodes
  std::vector<Path> paths_;  // between nodes
  std::vector<Path> slow_;   // between ranks, of rounds that count
};

}  // namespace faultline::plan
