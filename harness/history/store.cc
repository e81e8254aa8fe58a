#include "harness/history/store.h"

#include <sqlite3.h>

#include <filesystem>
#include <map>
#include <utility>

#include "base/input_file.h"
#include "harness/analysis/compared_metrics.h"
#include "harness/history/equal_runs.h"

namespace faultline::history {
namespace {

constexpr int kPatienceMilliseconds = 5000;
constexpr int kVersion = 1;
/// "FLTH": says of a file of SQLite that it is one of ours.
constexpr int kApplicationId = 0x464C5448;

constexpr const char* kTables = R"(
CREATE TABLE result(
  id INTEGER PRIMARY KEY,
  scenario TEXT NOT NULL,
  started_at TEXT NOT NULL,
  duration_ms REAL NOT NULL,
  seed TEXT NOT NULL,
  git TEXT NOT NULL,
  kernel TEXT NOT NULL,
  cpu TEXT NOT NULL,
  cores INTEGER NOT NULL,
  verdict TEXT NOT NULL,
  median_band_pct REAL NOT NULL,
  void_because TEXT NOT NULL,
  UNIQUE(scenario, started_at, duration_ms, seed));
CREATE TABLE value(
  result INTEGER NOT NULL REFERENCES result(id) ON DELETE CASCADE,
  strategy TEXT NOT NULL,
  metric TEXT NOT NULL,
  unit TEXT NOT NULL,
  value REAL NOT NULL);
CREATE INDEX value_of_result ON value(result);
)";

/// One statement, with its values bound in order.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) {
    sqlite3_stmt* made = nullptr;
    code_ = sqlite3_prepare_v2(database, sql, -1, &made, nullptr);
    statement_.reset(made);
  }

  template <typename... Values>
  void bindAll(const Values&... values) {
    if (statement_ == nullptr) return;
    sqlite3_reset(statement_.get());
    int position = 0;
    (bind(++position, values), ...);
  }
  /// True while there is a row.
  bool next() {
    if (statement_ == nullptr) return false;
    code_ = sqlite3_step(statement_.get());
    return code_ == SQLITE_ROW;
  }
  bool done() const { return code_ == SQLITE_DONE; }

  std::string text(int column) const {
    const auto* bytes = sqlite3_column_text(statement_.get(), column);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
    return bytes == nullptr ? "" : std::string(reinterpret_cast<const char*>(bytes), size);
  }
  double real(int column) const { return sqlite3_column_double(statement_.get(), column); }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  void bind(int position, const std::string& text) {
    sqlite3_bind_text(statement_.get(), position, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);  // NOLINT: the library's own macro
  }
  void bind(int position, double value) { sqlite3_bind_double(statement_.get(), position, value); }
  void bind(int position, std::int64_t value) {
    sqlite3_bind_int64(statement_.get(), position, value);
  }

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int code_ = SQLITE_OK;
};

}  // namespace

void Store::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Status Store::error(const std::string& attempt) const {
  const int code = sqlite3_errcode(database_.get());
  const std::string text =
      fmt::format("{} {}: {}", attempt, path_, sqlite3_errmsg(database_.get()));
  return Status(code == SQLITE_NOTADB ? Code::kInvalidArgument : Code::kIo, text);
}

Status Store::execute(const char* sql) const {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return okStatus();
  return error("use the history");
}

Result<Store> Store::open(const std::string& path) {
  return open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

Result<Store> Store::openExisting(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return errorf(Code::kNotFound,
                  "open the history {}: no such file; `faultline history add` makes it", path);
  }
  return open(path, SQLITE_OPEN_READWRITE);
}

Result<Store> Store::open(const std::string& path, int flags) {
  Store store(path);
  // SQLite would wait for a pipe, and read a device.
  if (const auto known = openInput(path);
      !known.ok() && known.status().code() == Code::kInvalidArgument) {
    return known.status().withContext("open the history");
  }
  // A link to nothing: a file would be made in a place that nobody named.
  std::error_code ignored;
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, ignored)) &&
      !std::filesystem::exists(path, ignored)) {
    return errorf(Code::kAlreadyExists,
                  "open the history {}: it is a symbolic link to nothing, which is not followed",
                  path);
  }
  sqlite3* made = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &made, flags, nullptr);
  store.database_.reset(made);
  if (made == nullptr) return errorf(Code::kIo, "open the history {}: out of memory", path);
  if (code != SQLITE_OK) return store.error("open the history");
  sqlite3_busy_timeout(made, kPatienceMilliseconds);
  RETURN_IF_ERROR(store.prepareTables());
  return store;
}

Status Store::prepareTables() {
  // Immediate: of two that make the same file one waits, and then finds it made.
  RETURN_IF_ERROR(execute("PRAGMA foreign_keys = ON; BEGIN IMMEDIATE"));
  const auto number = [&](const char* sql) {
    Statement pragma(database_.get(), sql);
    return pragma.next() ? pragma.integer(0) : -1;
  };
  const std::int64_t version = number("PRAGMA user_version");
  const std::int64_t owner = number("PRAGMA application_id");
  const std::int64_t tables = number("SELECT count(*) FROM sqlite_schema");
  Status status;
  if (tables == 0) {
    status = execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; {}",
                                 kApplicationId, kVersion, kTables)
                         .c_str());
  } else if (owner != kApplicationId) {
    status = errorf(Code::kInvalidArgument,
                    "open the history {}: it is a database of something else", path_);
  } else if (version != kVersion) {
    status =
        errorf(Code::kUnsupported, "open the history {}: it has version {}, this program knows {}",
               path_, version, kVersion);
  }
  const Status end = execute(status.ok() ? "COMMIT" : "ROLLBACK");
  return status.ok() ? end : status;
}

Result<bool> Store::add(const reports::ScenarioResult& result) {
  RETURN_IF_ERROR(execute("BEGIN IMMEDIATE"));
  const auto abandon = [&](Status status) {
    (void)execute("ROLLBACK");
    return status;
  };
  Statement insert(
      database_.get(),
      "INSERT OR IGNORE INTO result(scenario, started_at, duration_ms, seed, git, kernel,"
      " cpu, cores, verdict, median_band_pct, void_because)"
      " VALUES(?,?,?,?,?,?,?,?,?,?,?)");
  const reports::Environment& environment = result.environment;
  insert.bindAll(reports::scenarioName(result), result.started_at, result.duration_ms,
                 fmt::format("{}", result.seed), environment.git, environment.kernel,
                 environment.cpu, std::int64_t{environment.cores},
                 std::string(reports::nameOf(result.verdict)), equalRunsPercent(result),
                 reports::voidBecause(result));
  insert.next();
  if (!insert.done()) return abandon(error("add a result to the history"));
  const bool added = sqlite3_changes(database_.get()) > 0;
  const std::int64_t id = sqlite3_last_insert_rowid(database_.get());
  Statement value(database_.get(), "INSERT INTO value VALUES(?,?,?,?,?)");
  for (const std::string& strategy : run::measuredStrategies(result)) {
    for (const run::ComparedMetric& metric : run::comparedMetrics()) {
      if (!added) break;
      for (const double one : metric.values(result, strategy).values) {
        value.bindAll(id, strategy, std::string(metric.name), run::unitOf(metric, result), one);
        value.next();
        if (!value.done()) return abandon(error("add a value to the history"));
      }
    }
  }
  RETURN_IF_ERROR(execute("COMMIT"));
  return added;
}

Result<std::vector<StoredResult>> Store::read() const {
  std::vector<StoredResult> results;
  std::map<std::int64_t, std::size_t> places;
  Statement rows(
      database_.get(),
      "SELECT id, scenario, started_at, git, kernel, cpu, cores, verdict, median_band_pct,"
      " void_because FROM result ORDER BY started_at, id");
  while (rows.next()) {
    places[rows.integer(0)] = results.size();
    results.push_back({.scenario = rows.text(1),
                       .started_at = rows.text(2),
                       .git = rows.text(3),
                       .kernel = rows.text(4),
                       .cpu = rows.text(5),
                       .cores = static_cast<int>(rows.integer(6)),
                       .verdict = rows.text(7),
                       .median_band_pct = rows.real(8),
                       .void_because = rows.text(9),
                       .metrics = {}});
  }
  if (!rows.done()) return error("read the history");
  Statement values(database_.get(),
                   "SELECT result, strategy, metric, unit, value FROM value ORDER BY rowid");
  while (values.next()) {
    const auto place = places.find(values.integer(0));
    if (place == places.end()) continue;
    StoredMetric& metric = results[place->second].metrics[{values.text(1), values.text(2)}];
    metric.unit = values.text(3);
    metric.values.push_back(values.real(4));
  }
  if (!values.done()) return error("read the history");
  return results;
}

}  // namespace faultline::history
