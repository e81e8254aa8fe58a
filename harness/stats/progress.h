#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace faultline::stats {

/// How much work was done until each moment: of pieces that were each done evenly from their begin
/// to their end. Pieces may overlap, and there may be gaps between them. Times are in one unit of
/// the caller's choice.
class Progress {
 public:
  struct Piece {
    double begin = 0;
    double end = 0;  ///< not before `begin`; at it: all of the piece is done there
    double amount = 0;
  };
  explicit Progress(const std::vector<Piece>& pieces);

  /// Done until then; linear between the ends of pieces.
  double doneUntil(double at) const;
  /// Done in a window that begins there.
  double doneIn(double begin, double length) const {
    return doneUntil(begin + length) - doneUntil(begin);
  }

  /// The earliest begin, from `from` on, of a window of `length` that is over by `until` and in
  /// which at least `amount` is done; nullopt: there is none.
  std::optional<double> firstWindow(double from, double until, double length, double amount) const;

 private:
  std::vector<std::pair<double, double>> knots_;  ///< (time, done until then), in order of time
};

}  // namespace faultline::stats
