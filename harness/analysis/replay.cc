#include "harness/analysis/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "harness/analysis/analyse.h"
#include "harness/record/command_record.h"
#include "harness/record/run_record.h"
#include "harness/record/transcript_lines.h"
#include "harness/scenario/reader.h"
#include "harness/scenario/workload_kind.h"

namespace faultline::run {
namespace {

using reports::Json;
using transcript::Line;

/// The alternative with this index, read from `json`.
template <std::size_t index = 0>
Result<Line> readLine(std::size_t wanted, const Json& line) {
  if constexpr (index < std::variant_size_v<Line>) {
    if (index != wanted) return readLine<index + 1>(wanted, line);
    std::variant_alternative_t<index, Line> value;
    RETURN_IF_ERROR((JsonReader<Json, Strictness::kKnownKeys>::read(line, "", value)));
    return Line(std::move(value));
  } else {
    return Status(Code::kInternal, "no such line");
  }
}

Result<Line> parseLine(std::string_view text) {
  ASSIGN_OR_RETURN(Json line, parseJson<Json>(text));
  const auto name = line.is_object() ? line.find("line") : line.end();
  if (name == line.end() || !name->is_string()) {
    return Status(Code::kInvalidArgument, "this is no line of a transcript");
  }
  const auto found = std::ranges::find(transcript::kNames, name->get<std::string>());
  if (found == transcript::kNames.end()) {
    return errorf(Code::kInvalidArgument, "this program knows no line '{}'",
                  name->get<std::string>());
  }
  line.erase("line");
  return readLine(static_cast<std::size_t>(found - transcript::kNames.begin()), line);
}

/// Puts the lines together again.
class Player {
 public:
  Status take(Line line) {
    if (facts_) return wrong("it stands behind the last line");
    return std::visit([this](auto& one) { return play(one); }, line);
  }

  Result<reports::ScenarioResult> result() && {
    if (!facts_) return wrong("it is cut off: there is no last line");
    return analyse(*scenario_, std::move(runs_), *std::move(facts_));
  }

 private:
  static Status wrong(std::string why) { return Status(Code::kInvalidArgument, std::move(why)); }

  bool isOpen() const { return ranks_ || programs_; }

  Status play(const transcript::Header& header) {
    if (scenario_) return wrong("there is one scenario already");
    if (header.messages != wire::kVersion) {
      return wrong(fmt::format("this program understands messages of version {}, found {}",
                               wire::kVersion, header.messages));
    }
    if (header.version != transcript::kVersion) {
      return errorf(Code::kUnsupported, "this program replays version {}, found {}",
                    transcript::kVersion, header.version);
    }
    scenario::ReadResult read = scenario::readScenario(header.scenario.dump(), "scenario");
    if (!read.ok()) return wrong(read.mistakes.front().toString());
    scenario_ = std::move(read.scenario);
    return okStatus();
  }

  Status play(const transcript::RunHeader& run) {
    if (!scenario_) return wrong("the scenario is missing");
    if (isOpen()) return wrong("the run before it has no end");
    const bool drift = run.strategy == scenario_->noise.driftRow.name;
    planned_.strategy = drift ? &scenario_->noise.driftRow : scenario_->find(run.strategy);
    if (planned_.strategy == nullptr) {
      return errorf(Code::kInvalidArgument, "the scenario has no strategy '{}'", run.strategy);
    }
    planned_.block = run.block;
    planned_.arm = armOf(*planned_.strategy);
    if (scenario_->workload.kind->runsRanks) {
      ranks_.emplace(*scenario_, planned_);
    } else {
      programs_.emplace(*scenario_, planned_);
    }
    return okStatus();
  }

  Status play(Observed& observed) {
    if (!isOpen()) return wrong("it belongs to no run");
    if (ranks_) {
      runs_.push_back(ranks_->finish(std::move(observed)));
    } else if (programs_) {
      runs_.push_back(programs_->finish(std::move(observed)));
    }
    ranks_.reset();
    programs_.reset();
    return okStatus();
  }

  Status play(const reports::MachineLoad& load) {
    if (runs_.empty() || isOpen()) return wrong("it belongs to no run that is over");
    runs_.back().run.load = load;
    return okStatus();
  }

  Status play(ExperimentFacts& facts) {
    if (!scenario_) return wrong("the scenario is missing");
    // A run in which the bench failed has no entry.
    if (isOpen() && facts.bench_error.empty()) return wrong("the run before it has no end");
    facts_ = std::move(facts);
    return okStatus();
  }

  template <typename Event>
  Status play(const Event& event) {
    if (!isOpen()) return wrong("it belongs to no run");
    if (ranks_) ranks_->add(event);
    if (programs_) programs_->add(event);
    return okStatus();
  }

  std::optional<scenario::Scenario> scenario_;
  PlannedRun planned_;
  std::optional<RunRecord> ranks_;         // of the run that is read,
  std::optional<CommandRecord> programs_;  // or this
  std::vector<RecordedRun> runs_;
  std::optional<ExperimentFacts> facts_;
};

}  // namespace

Result<reports::ScenarioResult> replay(std::string_view transcript) {
  Player player;
  std::istringstream lines{std::string(transcript)};
  std::string text;
  for (int number = 1; std::getline(lines, text); ++number) {
    Result<Line> line = parseLine(text);
    const Status taken = line.ok() ? player.take(*std::move(line)) : line.status();
    if (!taken.ok()) return taken.withContext(fmt::format("line {}", number));
  }
  return std::move(player).result();
}

}  // namespace faultline::run
