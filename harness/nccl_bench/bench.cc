#include "harness/nccl_bench/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <ostream>
#include <thread>

#include "base/units.h"
#include "harness/stats/quantile.h"
#include "reports/collectives_text.h"
#include "resilient_ccl/schedule/bound.h"

namespace faultline::nccl_bench {
namespace {

using reports::CollectiveRow;
using scenario::SweepCell;
using workload::DataKey;

constexpr std::uint64_t kDataSeed = 1;
// Of a call whose rank had to give it up, in place of its time.
constexpr std::string_view kFailed = "failed";

/// Appends a line and sees that it is written: others read along.
Status appendLine(const std::string& path, const std::string& line) {
  if (path.empty()) return okStatus();
  std::ofstream file(path, std::ios::app);
  file << line << '\n' << std::flush;
  if (!file) return errorf(Code::kIo, "append a line to {}: it cannot be written", path);
  return okStatus();
}

class Bench {
 public:
  Bench(const Options& options, Device& device, const Exchange& exchange, std::ostream& out,
        const LostPort& lostPort)
      : options_(options),
        device_(device),
        exchange_(exchange),
        out_(out),
        lostPort_(lostPort),
        cells_(cellsOf(options.sweep)) {
    std::vector<int> all(static_cast<std::size_t>(options.ranks));
    std::iota(all.begin(), all.end(), 0);
    become(std::move(all));
  }

  Result<std::int64_t> run();

 private:
  void become(std::vector<int> members);
  Result<std::vector<std::string>> meet(const std::string& mine);
  Status join();
  Status tellHead();
  Result<CollectiveRow> measure(const SweepCell& cell);
  Status measureMean(const SweepCell& cell, CollectiveRow& row);
  Status measureEach(const SweepCell& cell, CollectiveRow& row);
  Result<std::optional<double>> callTogether(int calls);
  Status callAndWait(int calls);
  Status rebuild();
  Status makeAnew();
  Status shrink();
  Status prepare(const SweepCell& cell);
  Status look(CollectiveRow& row);
  Result<std::int64_t> sum(std::int64_t mine);
  void finishRow(const SweepCell& cell, CollectiveRow& row) const;
  bool tells() const { return rank_ == 0; }
  int ranks() const { return static_cast<int>(members_.size()); }

  const Options& options_;
  Device& device_;
  const Exchange& exchange_;
  std::ostream& out_;
  const LostPort& lostPort_;
  const std::vector<SweepCell> cells_;
  std::vector<int> members_;  // of the communicator: ranks that they had in the first one
  int rank_ = 0;              // in the communicator
  std::optional<workload::CollectiveBuffers> buffers_;
  DataKey key_{.seed = kDataSeed, .iteration = 0};
  std::int64_t iteration_ = 0;  // of calls that are told one by one
  std::optional<Status> lastFailure_;
};

Result<std::int64_t> Bench::run() {
  RETURN_IF_ERROR(join());
  RETURN_IF_ERROR(tellHead());
  std::int64_t wrong = 0;
  double bandwidth = 0;
  std::optional<schedule::Collective> operation;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const SweepCell& cell = cells_[i];
    // A size that has no element for each rank.
    if (countOf(cell, ranks()) == 0) continue;
    if (tells() && operation != cell.operation) {
      out_ << reports::collectivesHead(collectiveName(cell.operation)) << std::flush;
    }
    operation = cell.operation;
    ASSIGN_OR_RETURN(const CollectiveRow row, measure(cell));
    const bool pair = !cell.inPlace && i + 1 < cells_.size() && cells_[i + 1].inPlace;
    CollectiveRow other;
    if (pair) {
      ASSIGN_OR_RETURN(other, measure(cells_[++i]));
    }
    wrong += row.wrong_elements + other.wrong_elements;
    bandwidth += pair ? (row.busbw + other.busbw) / 2 : row.busbw;
    if (!tells()) continue;
    out_ << (cell.inPlace ? reports::collectivesLine(nullptr, &row)
                          : reports::collectivesLine(&row, pair ? &other : nullptr))
         << std::flush;
  }
  const auto rows = std::ranges::count_if(cells_, [&](const SweepCell& cell) {
    return !(cell.inPlace && options_.sweep.place == scenario::Place::kBoth) &&
           countOf(cell, ranks()) > 0;
  });
  if (tells()) {
    out_ << reports::collectivesFoot(wrong, rows == 0 ? 0 : bandwidth / static_cast<double>(rows))
         << std::flush;
  }
  return wrong;
}

void Bench::become(std::vector<int> members) {
  members_ = std::move(members);
  rank_ = static_cast<int>(std::ranges::find(members_, options_.rank) - members_.begin());
  buffers_.emplace(cells_, rank_, ranks());
}

/// What the members say, by rank. Who has left takes part, and has nothing to say.
Result<std::vector<std::string>> Bench::meet(const std::string& mine) {
  ASSIGN_OR_RETURN(const auto all, exchange_(mine));
  std::vector<std::string> said;
  for (const int member : members_) said.push_back(all[static_cast<std::size_t>(member)]);
  return said;
}

Status Bench::join() {
  std::string mine;
  if (rank_ == 0) {
    ASSIGN_OR_RETURN(mine, device_.newCommunicatorId());
  }
  ASSIGN_OR_RETURN(const auto all, meet(mine));
  return device_.join(all.front(), rank_, ranks());
}

Status Bench::tellHead() {
  ASSIGN_OR_RETURN(const auto names, meet(fmt::format("{:>8} {}", ::getpid(), device_.name())));
  ASSIGN_OR_RETURN(const auto identities, meet(device_.identity()));
  if (!tells()) return okStatus();
  const auto& sizes = options_.sweep.sizes;
  out_ << fmt::format(
      "# minBytes {} maxBytes {} warmup iters: {} iters: {} validation: {} NCCL version {}\n"
      "# times: {}, of the slowest rank\n#\n# Using devices\n",
      sizes.front(), sizes.back(), options_.warmups, options_.calls, options_.check ? 1 : 0,
      device_.libraryVersion(),
      options_.each ? "median of single calls" : "mean of calls in a row");
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    out_ << fmt::format("#  Rank {:>3} Pid {}\n", rank, names[rank]);
  }
  std::map<std::string, int> users;
  for (const std::string& identity : identities) ++users[identity];
  if (users.size() < identities.size()) {
    out_ << fmt::format("# Ranks share GPUs: {} ranks on {}\n", identities.size(), users.size());
  }
  out_ << std::flush;
  return okStatus();
}

Status Bench::prepare(const SweepCell& cell) {
  ++key_.iteration;
  buffers_->prepare(cell, key_);
  return device_.upload(*buffers_);
}

Status Bench::look(CollectiveRow& row) {
  if (!options_.check) return okStatus();
  RETURN_IF_ERROR(device_.download(*buffers_));
  const workload::CheckResult found = buffers_->check(key_);
  row.wrong_elements += found.wrong;
  row.checked_elements += found.checked;
  return okStatus();
}

Status Bench::callAndWait(int calls) {
  for (int call = 0; call < calls; ++call) RETURN_IF_ERROR(device_.launch(*buffers_));
  const TimePoint deadline = now() + options_.wait;
  for (;;) {
    ASSIGN_OR_RETURN(const bool done, device_.done());
    if (done) return okStatus();
    if (now() >= deadline) {
      return errorf(Code::kDeadlineExceeded, "{} call(s) of {} of {} bytes: not done within {}",
                    calls, collectiveName(buffers_->cell().operation), buffers_->cell().size,
                    formatDuration(options_.wait));
    }
    std::this_thread::yield();
  }
}

/// Milliseconds of the slowest rank from a common start; nothing when a rank's call has failed, and
/// they are to be made again.
Result<std::optional<double>> Bench::callTogether(int calls) {
  RETURN_IF_ERROR(meet("").status());
  const TimePoint begin = now();
  const Status called = callAndWait(calls);
  const Duration took = now() - begin;
  if (!called.ok()) {
    if (options_.recovery == Recovery::kNone) {
      return errorf(called.code(), "{} ({:.1f} s after the call began)", called.message(),
                    toSeconds(took));
    }
    lastFailure_ = called;
    RETURN_IF_ERROR(appendLine(options_.recoveryFile, std::string(kFailed)));
  }
  ASSIGN_OR_RETURN(const auto all,
                   meet(called.ok() ? fmt::format("{}", toMilliseconds(took)) : kFailed.data()));
  double slowest = 0;
  for (const std::string& text : all) {
    if (text == kFailed) {
      if (!called.ok()) return std::optional<double>();
      RETURN_IF_ERROR(appendLine(options_.recoveryFile, std::string(kFailed)));
      return std::optional<double>();
    }
    double one = 0;
    std::from_chars(text.data(), text.data() + text.size(), one);
    slowest = std::max(slowest, one);
  }
  return std::optional(slowest);
}

Status Bench::makeAnew() {
  RETURN_IF_ERROR(device_.abort());
  return join();
}

/// Who has a port that is down leaves, and the others make a smaller communicator.
Status Bench::shrink() {
  constexpr std::string_view kLost = "lost";
  ASSIGN_OR_RETURN(const auto ports, meet(std::string(lostPort_ && lostPort_() ? kLost : "whole")));
  std::vector<int> without;
  std::vector<int> left;
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (ports[at] == kLost) {
      without.push_back(rank);
    } else {
      left.push_back(members_[at]);
    }
  }
  if (without.empty() || left.empty()) {
    return errorf(Code::kUnavailable,
                  "shrink after a failure: {} of {} ranks has a port that is down, and who has one "
                  "is whom the others go on without{}",
                  without.empty() ? "none" : "each", ranks(),
                  lastFailure_ ? ": " + lastFailure_->message() : "");
  }
  if (std::ranges::count(without, rank_) > 0) {
    RETURN_IF_ERROR(appendLine(options_.recoveryFile, "left"));
    RETURN_IF_ERROR(device_.abort());
    return Status(Code::kAborted, "left: a port of this rank is down");
  }
  RETURN_IF_ERROR(device_.shrink(without));
  become(std::move(left));
  return okStatus();
}

Status Bench::rebuild() {
  const bool shrinks = options_.recovery == Recovery::kShrink;
  RETURN_IF_ERROR(shrinks ? shrink() : makeAnew());
  RETURN_IF_ERROR(appendLine(options_.recoveryFile, fmt::format("rebuilt {}", ranks())));
  if (tells()) {
    out_ << fmt::format("# communicator {}{}\n",
                        shrinks ? fmt::format("of {} ranks", ranks()) : "made anew",
                        lastFailure_ ? ": " + lastFailure_->message() : "")
         << std::flush;
  }
  lastFailure_.reset();
  return okStatus();
}

Status Bench::measureMean(const SweepCell& cell, CollectiveRow& row) {
  RETURN_IF_ERROR(prepare(cell));
  if (options_.warmups > 0) {
    RETURN_IF_ERROR(callTogether(options_.warmups).status());
  }
  ASSIGN_OR_RETURN(const std::optional<double> ms, callTogether(options_.calls));
  row.n = options_.calls;
  row.p50_ms = row.min_ms = row.max_ms = *ms / options_.calls;
  if (!options_.check) return okStatus();
  RETURN_IF_ERROR(prepare(cell));
  RETURN_IF_ERROR(callTogether(1).status());
  return look(row);
}

Status Bench::measureEach(const SweepCell& cell, CollectiveRow& row) {
  std::vector<double> times;
  for (int call = -options_.warmups; call < options_.calls;) {
    RETURN_IF_ERROR(prepare(cell));
    if (call >= 0) {
      RETURN_IF_ERROR(appendLine(options_.progressFile, fmt::format("{}", iteration_)));
    }
    const TimePoint begin = now();
    ASSIGN_OR_RETURN(std::optional<double> ms, callTogether(1));
    const bool again = !ms;
    while (!ms) {
      RETURN_IF_ERROR(rebuild());
      RETURN_IF_ERROR(prepare(cell));
      ASSIGN_OR_RETURN(ms, callTogether(1));
    }
    if (again) ms = toMilliseconds(now() - begin);
    RETURN_IF_ERROR(look(row));
    if (call++ < 0) continue;
    times.push_back(*ms);
    if (tells()) {
      out_ << fmt::format("# call {} {} {} time_us {:.1f}\n", iteration_, cell.size,
                          cell.inPlace ? "in-place" : "out-of-place", *ms * 1000)
           << std::flush;
    }
    ++iteration_;
  }
  row.n = static_cast<int>(times.size());
  row.p50_ms = *stats::median(times);
  row.min_ms = *std::ranges::min_element(times);
  row.max_ms = *std::ranges::max_element(times);
  if (tells()) {
    out_ << fmt::format("# {} {} {}: {} calls, us: min {:.1f} p50 {:.1f} max {:.1f}\n",
                        collectiveName(cell.operation), cell.size,
                        cell.inPlace ? "in-place" : "out-of-place", row.n, row.min_ms * 1000,
                        row.p50_ms * 1000, row.max_ms * 1000)
         << std::flush;
  }
  return okStatus();
}

void Bench::finishRow(const SweepCell& cell, CollectiveRow& row) const {
  row.operation = collectiveName(cell.operation);
  row.size_bytes = bytesOf(cell, ranks());
  row.count = countOf(cell, ranks());
  row.dtype = reduction::nameOf(cell.dtype);
  if (scenario::reduces(cell.operation)) row.op = reduction::nameOf(cell.op);
  row.in_place = cell.inPlace;
  constexpr double kBytesPerMsOfGB = 1e6;  // 1 GB/s
  if (row.p50_ms > 0) {
    row.algbw = static_cast<double>(row.size_bytes) / row.p50_ms / kBytesPerMsOfGB;
  }
  row.busbw = row.algbw * schedule::faultFreeTime(cell.operation, ranks());
}

Result<CollectiveRow> Bench::measure(const SweepCell& cell) {
  CollectiveRow row;
  RETURN_IF_ERROR(options_.each ? measureEach(cell, row) : measureMean(cell, row));
  finishRow(cell, row);
  ASSIGN_OR_RETURN(row.wrong_elements, sum(row.wrong_elements));
  return row;
}

Result<std::int64_t> Bench::sum(std::int64_t mine) {
  ASSIGN_OR_RETURN(const auto all, meet(fmt::format("{}", mine)));
  std::int64_t total = 0;
  for (const std::string& text : all) {
    std::int64_t one = 0;
    std::from_chars(text.data(), text.data() + text.size(), one);
    total += one;
  }
  return total;
}

}  // namespace

Result<std::int64_t> runBench(const Options& options, Device& device, const Exchange& exchange,
                              std::ostream& out, const LostPort& lostPort) {
  return Bench(options, device, exchange, out, lostPort).run();
}

}  // namespace faultline::nccl_bench
