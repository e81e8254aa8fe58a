#include "harness/scenario/schedule_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/input_file.h"
#include "base/parameter.h"
#include "harness/baseline/strategy_table.h"
#include "harness/scenario/record_reader.h"
#include "harness/scenario/text_check.h"
#include "harness/scenario/workload_kind.h"
#include "resilient_ccl/schedule/verifier.h"
#include "resilient_ccl/schedule/written/read_schedule.h"

namespace faultline::scenario {
namespace {

using schedule::ScheduleSource;

/// Sizes with unequal chunks for which one schedule is proved. A scenario may list thousands, and
/// each proof takes as long as the first one: up to 0.1 s for 8,000 operations of a ring or a tree.
constexpr std::size_t kMostProofs = 64;

class ScheduleChecker {
 public:
  ScheduleChecker(const Scenario& scenario, const Node& root, Findings& findings)
      : scenario_(scenario), root_(root), findings_(findings) {}

  void check() {
    const Node* const list = root_.find("strategies");
    // Rows and elements of the list are the same as long as all of these are understood.
    if (list == nullptr || list->items.size() != scenario_.strategies.size()) return;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < scenario_.strategies.size(); ++i) {
      const Strategy& strategy = scenario_.strategies[i];
      if (!strategy.options.has(baseline::kContent)) continue;
      path_ = fmt::format("strategies.{}.{}.{}", i, strategy.kind(), baseline::kSchedule);
      file_ = strategy.options.get<std::string>(baseline::kSchedule);
      const std::string& text = strategy.options.get<std::string>(baseline::kContent);
      bytes += text.size();
      if (bytes > kMostScheduleText) {
        fail(
            fmt::format("with it the schedules of this scenario have {}, and {} are possible: "
                        "write it with fewer segments or chunks",
                        formatSize(static_cast<Bytes>(bytes)), formatSize(kMostScheduleText)));
        return;
      }
      const auto source = schedule::readSchedule(text);
      if (!source.ok()) {
        fail(source.status().message());
      } else if (isRight(**source)) {
        checkFit(**source);
      }
    }
  }

 private:
  void fail(std::string_view why) {
    findings_.add(locate(root_, path_), fmt::format("schedule: '{}': {}", file_, why));
  }

  /// Proves the schedule for chunks of one element, and with that for every multiple of `chunks()`:
  /// all offsets and counts grow alike. Other sizes have unequal chunks: isRightForAll.
  bool isRight(const ScheduleSource& source) {
    return isRight(source, source.chunks(), "",
                   ". 'faultline schedule verify --import' shows all of it");
  }

  /// `where` and `advice` are put into the message around what the verifier has found.
  bool isRight(const ScheduleSource& source, std::int64_t elements, std::string_view where,
               std::string_view advice) {
    const auto made = source.make(elements);
    if (!made.ok()) {
      fail(made.status().message());
      return false;
    }
    const auto report = schedule::verifySchedule(**made, {.mostWork = workLeft_});
    if (!report.ok()) {
      fail(report.status().message());
      return false;
    }
    workLeft_ -= report->work;
    if (report->ok()) return true;
    const schedule::Problem& first = report->problems.front();
    const std::int64_t more = std::ssize(report->problems) - 1 + report->moreProblems;
    fail(fmt::format(
        "is wrong{}: rank {} lane {} op {}: {}{}{}", where, first.rank, first.lane, first.op,
        first.text,
        more == 0 ? ""
                  : fmt::format(", and {}{} more", report->countedAll ? "" : "at least ", more),
        advice));
    return false;
  }

  /// Proves each size whose chunks are unequal. A schedule that moves data to another offset may be
  /// right for equal chunks alone.
  void isRightForAll(const ScheduleSource& source, std::span<const WorkloadCall> calls) {
    const std::string advice = fmt::format(
        ". Its chunks are equal where a call has a multiple of {} elements", source.chunks());
    std::set<std::int64_t> proved;
    for (const WorkloadCall& call : calls) {
      if (call.elements % source.chunks() == 0 || !proved.insert(call.elements).second) continue;
      if (proved.size() > kMostProofs) {
        fail(
            fmt::format("is called with more than {} sizes that are no multiple of its {} chunks, "
                        "and each needs a proof of its own: take fewer sizes, or multiples",
                        kMostProofs, source.chunks()));
        return;
      }
      const std::string where = fmt::format(" where {} has {} elements", call.what, call.elements);
      if (!isRight(source, call.elements, where, advice)) return;
    }
  }

  void checkFit(const ScheduleSource& source) {
    const Workload& workload = scenario_.workload;
    if (!findings_.usable({"cluster", "workload"})) return;
    const WorkloadKind& kind = *workload.kind;
    if (!kind.runsRanks) return;  // no such row: row_option_checks.cc
    if (source.ranks() != scenario_.cluster.ranks()) {
      fail(
          fmt::format("is for {} ranks, and the cluster has {} ('nodes' x 'ranks_per_node'): write "
                      "it for {}, or change the cluster",
                      source.ranks(), scenario_.cluster.ranks(), scenario_.cluster.ranks()));
      return;
    }
    const std::string why = kind.whyNoSchedule(workload);
    if (!why.empty()) {
      fail(why);
      return;
    }
    if (isOfAnother(source)) return;
    const std::vector<WorkloadCall> made = kind.calls(scenario_);
    for (const WorkloadCall& call : made) {
      if (schedule::fitsData(source, call.elements)) continue;
      fail(
          fmt::format("has {} chunks, and {} has {} elements: {} has at least {} of them then ({})"
                      "{}, or write the schedule with fewer chunks",
                      source.chunks(), call.what, call.elements, call.what, source.chunks(),
                      formatSize(source.chunks() * call.elementSize),
                      hasOutput(source.collective()) ? ", and a multiple of that" : ""));
      return;
    }
    isRightForAll(source, made);
  }

  static std::string_view kindThatChooses() {
    const auto kinds = workloadKinds();
    const auto found = std::ranges::find_if(
        kinds, [](const WorkloadKind* kind) { return kind->operations != nullptr; });
    return found == kinds.end() ? std::string_view() : (*found)->name;
  }

  /// Calls of another collective would not follow it, and the row not be what its name says.
  bool isOfAnother(const ScheduleSource& source) {
    const auto name = schedule::collectiveName(source.collective());
    if (source.root() != 0) {
      fail(fmt::format("is a {} of root {}, and calls are of root 0", name, source.root()));
      return true;
    }
    const Workload& workload = scenario_.workload;
    const bool chosen = workload.kind->operations != nullptr;
    constexpr std::array kUsual{schedule::Collective::kAllReduce};
    const std::span<const schedule::Collective> operations =
        chosen ? workload.kind->operations(workload) : std::span(kUsual);
    for (const schedule::Collective operation : operations) {
      if (operation == source.collective()) continue;
      fail(fmt::format("is a schedule for {}, and the workload calls {}: {}", name,
                       schedule::collectiveName(operation),
                       chosen ? fmt::format("write 'operations: [{}]'", name)
                              : fmt::format("use 'workload: {{kind: {}}}' with 'operations: [{}]'",
                                            kindThatChooses(), name)));
      return true;
    }
    return false;
  }

  const Scenario& scenario_;
  const Node& root_;
  Findings& findings_;
  std::string path_;  // of the row in hand
  std::string file_;
  std::int64_t workLeft_ = kMostScheduleWork;
};

}  // namespace

void readScheduleText(const Node* options, Location where, const std::string& folder,
                      const std::string& path, Strategy& strategy, Findings& findings) {
  const Node* const content = options == nullptr ? nullptr : options->find(baseline::kContent);
  if (content != nullptr) {
    RecordReader records(findings);
    strategy.options.set(
        std::string(baseline::kContent),
        records.readScalar(*content, baseline::contentSpec(), joinPath(path, baseline::kContent)));
    return;
  }
  const std::string file = strategy.options.get<std::string>(baseline::kSchedule);
  const Node* const named = options == nullptr ? nullptr : options->find(baseline::kSchedule);
  const std::string at = joinPath(path, baseline::kSchedule);
  const auto fail = [&](std::string_view why) {
    findings.addAt(at, named == nullptr ? where : named->where, fmt::format("schedule: {}", why));
  };
  const auto text = readInput((std::filesystem::path(folder) / file).string(),
                              {.what = "schedule", .mostBytes = kMostScheduleText});
  if (!text.ok()) return fail(text.status().message());
  if (const auto problem = checkText(*text, 0)) {
    return fail(fmt::format("'{}': line {}: {}", file, problem->where.line, problem->message));
  }
  strategy.options.set(std::string(baseline::kContent), *text);
}

std::string rowNameOf(std::string_view file) {
  std::string name = std::filesystem::path(file).stem().string();
  const auto possible = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  std::ranges::replace_if(name, std::not_fn(possible), '_');
  name.resize(std::min(name.size(), kLongestName));
  const auto read = parseParameter(baseline::rowNameSpec(), name);
  return read.ok() ? name : "";
}

void checkSchedules(const Scenario& scenario, const Node& root, Findings& findings) {
  ScheduleChecker(scenario, root, findings).check();
}

}  // namespace faultline::scenario
