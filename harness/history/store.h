#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "harness/history/trend.h"
#include "reports/result.h"

struct sqlite3;

namespace faultline::history {

/// A SQLite file with what results say, one row per result and one per value of a metric
/// (run/compared_metrics.h). Open to any other tool:
///
///   result(id, scenario, started_at, duration_ms, seed, git, kernel, cpu, cores, verdict,
///          median_band_pct, void_because)
///   value(result, strategy, metric, unit, value)
///
/// `median_band_pct` is what equal runs of the result differed by (equal_runs.h); 0: not known.
/// Several processes may write at once: each waits for the other up to five seconds. Only in builds
/// with SQLite (FAULTLINE_SQLITE is defined).
class Store {
 public:
  /// Opens the file; one that is not there is made. kInvalidArgument when it is not one of ours,
  /// kUnsupported when a later version has made it, kIo otherwise.
  static Result<Store> open(const std::string& path);
  /// The same of a file that must be there: kNotFound.
  static Result<Store> openExisting(const std::string& path);

  /// Adds a result, whole or not at all. False: it was there already (the same scenario, seed,
  /// start, and duration).
  Result<bool> add(const reports::ScenarioResult& result);

  /// All results, the oldest first.
  Result<std::vector<StoredResult>> read() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Store(std::string path) : path_(std::move(path)) {}
  static Result<Store> open(const std::string& path, int flags);
  Status prepareTables();
  Status execute(const char* sql) const;
  Status error(const std::string& attempt) const;

  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace faultline::history
