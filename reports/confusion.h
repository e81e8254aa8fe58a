#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/claimed_folder.h"
#include "base/status.h"
#include "reports/result.h"

namespace faultline::reports {

/// What was injected against what the job held to be broken, over the runs of many results.
struct ConfusionMatrix {
  static constexpr std::string_view kNoFault = "nothing";

  /// A fault as it was injected, seen from one end.
  struct Row {
    std::string fault;     ///< its kind and parameters; kNoFault for failovers without one
    std::string end;       ///< "own": the node that was struck; "peer": the others
    std::string expected;  ///< in words, e.g. "path (outgoing)"
    int strikes = 0;
    std::vector<int> counts;  ///< one per column: failovers, or strikes without any
    std::vector<bool> right;  ///< which columns are what it should be
    bool judged = true;       ///< false: whatever is found is right
    /// Failovers that had a place to name (failovers[].where), of a fault at one node's link: those
    /// whose cause and place are right, whose cause or place is wrong, and whose cause is right
    /// though nobody could tell the place.
    struct Places {
      int right = 0, wrong = 0, unknown = 0;
      int total() const { return right + wrong + unknown; }
    } places;

    /// Per failover of this row: until it was noticed, from then until no late byte could land,
    /// from then until all was delivered elsewhere; and the pause.
    Percentiles detection_ms, fence_ms, redelivery_ms, pause_ms;

    int total() const;
    /// null when nothing was counted or nothing is expected.
    std::optional<double> rightPercent() const;
    /// Of `places`, those whose cause and place are right.
    std::optional<double> placedPercent() const;
  };

  std::vector<std::string> columns;  ///< causes, those of paths by their dead direction, and "none"
  std::vector<Row> rows;
  int results = 0;
  int runs = 0;
  int strikes = 0;
  int unproved = 0;  ///< strikes without evidence, which count nowhere

  /// What is wrong in words, "" when nothing is: failovers that no fault explains, and rows of
  /// which less than kLeastRightPercent is right.
  std::string complaint() const;
  static constexpr double kLeastRightPercent = 98;
};

/// Two tables for a terminal of 100 columns: verdicts, and times.
std::string confusionText(const ConfusionMatrix& matrix);

/// The same for scripts.
Json confusionJson(const ConfusionMatrix& matrix);

/// The same as a page that needs nothing else.
std::string confusionHtml(const ConfusionMatrix& matrix);

/// Writes matrix.html, matrix.json and summary.md into a directory, which is created when missing.
/// `results` are those that the matrix is of. Errors as ClaimedFiles::claim; with kReplaced files
/// of an earlier version are replaced.
Status writeConfusion(const ConfusionMatrix& matrix, const std::vector<ScenarioResult>& results,
                      const std::string& directory, Earlier earlier = Earlier::kRefused);

}  // namespace faultline::reports
