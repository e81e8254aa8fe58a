#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "resilient_ccl/schedule/problems.h"
#include "resilient_ccl/schedule/proof_work.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::schedule {

struct VerifyOptions {
  /// Unfinished sends, and likewise receives, that an executor allows in a lane. 1 is the hardest
  /// case: what finishes with 1 finishes with more.
  int window = 1;
  /// Further problems are counted, not listed.
  int maxProblems = 50;
  /// Steps of work (proof_work.h) after which the proof is given up: a minute or two.
  std::int64_t mostWork = std::int64_t{1} << 37;
  /// Bytes of each table that the proof makes; one that needs a larger one is given up.
  std::int64_t mostBytes = ProofWork::kMostBytes;
  /// Likewise of all that it has at the same time.
  std::int64_t mostBytesTogether = ProofWork::kMostBytesTogether;
};

struct VerifyReport {
  int ranks = 0;
  std::int64_t operations = 0;
  std::vector<Problem> problems;
  std::int64_t moreProblems = 0;  ///< beyond maxProblems
  bool countedAll = true;         ///< false: there are at least so many
  std::int64_t work = 0;          ///< what the proof took, as mostWork counts

  bool ok() const { return problems.empty(); }
};

/// Proves a schedule right, symbolically, for every element and without data:
///
/// - messages match in number and size, waits refer to earlier operations, pieces are inside;
/// - nothing deadlocks, with an unlimited window and with that of the options;
/// - no two operations touch the same elements without an order between them; in particular nobody
///   sends what is still being reduced or received;
/// - where it says that its lanes are layers, nobody touches what a higher one has written, or
///   writes what one has read;
/// - every rank ends with what its collective promises (`Collective`): for sums, every rank's
///   contribution to every element exactly once; for data, the right elements of the right rank;
///   and nobody sends what he never had;
/// - all ranks add in the same order, so that their results are bit-identical.
///
/// The later checks run only when the earlier ones pass. kUnsupported when the schedule is too
/// large for the generic path (OpTable::kMaxOps), or its proof takes more work or memory than there
/// may be: what a proof takes does not follow from the size of the schedule.
Result<VerifyReport> verifySchedule(const Schedule& schedule, const VerifyOptions& options = {});

}  // namespace faultline::schedule
