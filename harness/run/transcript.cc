#include "harness/run/transcript.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sstream>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/json_fields.h"
#include "harness/run/command_record.h"
#include "harness/run/run_record.h"
#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"
#include "reports/result_fields.h"

namespace faultline::command {

template <typename V>
void visitFields(V& v, Of<Rebuildings::Rebuilding> auto& made) {
  v.required("noticed", made.noticed);
  v.required("resumed", made.resumed);
  v.required("ranks", made.ranks);
  v.required("missing", made.missing);
}

}  // namespace faultline::command

namespace faultline::run {
namespace {

using reports::Json;

constexpr int kVersion = 1;

// The first line.
struct Header {
  int version = kVersion;
  Json scenario;  // as read, defaults filled in
};

// A run begins.
struct RunHeader {
  int block = 0;
  std::string strategy;
};

template <typename V>
void visitFields(V& v, Of<Header> auto& header) {
  v.required("version", header.version);
  v.required("scenario", header.scenario);
}

template <typename V>
void visitFields(V& v, Of<RunHeader> auto& run) {
  v.required("block", run.block);
  v.required("strategy", run.strategy);
}

}  // namespace

template <typename V>
void visitFields(V& v, Of<FaultChange> auto& change) {
  v.required("broken", change.broken);
  v.required("before", change.before);
  v.required("after", change.after);
  v.required("peer", change.peer);
}

template <typename V>
void visitFields(V& v, Of<FaultChanges::OfFault> auto& fault) {
  v.required("node", fault.node);
  v.required("rail", fault.rail);
  v.required("group", fault.group);
  v.required("changes", fault.changes);
}

template <typename V>
void visitFields(V& v, Of<FaultChanges> auto& changes) {
  v.required("faults", changes.faults);
}

template <typename V>
void visitFields(V& v, Of<Goodput> auto& goodput) {
  v.required("bits_per_second", goodput.value);
  v.required("missing", goodput.missing);
}

template <typename V>
void visitFields(V& v, Of<Observed> auto& observed) {
  v.required("rails", observed.rails);
  v.required("rail_series", observed.railSeries);
  v.required("faults", observed.faults);
  v.required("evidence", observed.evidence);
  v.required("invalid_because", observed.invalidBecause);
  v.required("goodput", observed.goodput);
  v.required("changes", observed.changes);
}

template <typename V>
void visitFields(V& v, Of<ExperimentFacts> auto& facts) {
  v.required("scenario_file", facts.scenario_file);
  v.required("started_at", facts.started_at);
  v.required("duration_ms", facts.duration_ms);
  v.required("blocks", facts.blocks);
  v.required("interrupted", facts.interrupted);
  v.required("stopped", facts.stopped);
  v.required("kept_awake", facts.kept_awake);
  v.required("notes", facts.notes);
  v.required("bench_error", facts.bench_error);
  v.required("environment", facts.environment);
}

template <typename V>
void visitFields(V& v, Of<HangProof::Hang> auto& hang) {
  v.required("fault", hang.fault);
  v.required("payload", hang.payload);
  v.required("watched_from", hang.watchedFrom);
}

namespace event {

template <typename V>
void visitFields(V& v, Of<Started> auto& event) {
  v.required("at", event.at);
}

template <typename V>
void visitFields(V& v, Of<Heard> auto& event) {
  v.required("rank", event.rank);
  v.required("at", event.at);
  v.required("message", event.message);
}

template <typename V>
void visitFields(V& v, Of<Shrunk> auto& event) {
  v.required("rank", event.rank);
  v.required("message", event.message);
  v.required("fault", event.fault);
}

template <typename V>
void visitFields(V& v, Of<Hung> auto& event) {
  v.required("at", event.at);
  v.required("hang", event.hang);
}

template <typename V>
void visitFields(V& v, Of<Crashed> auto& event) {
  v.required("message", event.message);
}

template <typename V>
void visitFields(V& v, Of<CutOff> auto& event) {
  v.required("at", event.at);
  v.required("fault", event.fault);
}

template <typename V>
void visitFields(V& v, Of<Repaired> auto& event) {
  v.required("at", event.at);
}

template <typename V>
void visitFields(V& v, Of<Reloaded> auto& event) {
  v.required("at", event.at);
}

template <typename V>
void visitFields(V& v, Of<Failed> auto& event) {
  v.required("at", event.at);
  v.required("status", event.status);
  v.required("message", event.message);
}

template <typename V>
void visitFields(V& v, Of<Progressed> auto& event) {
  v.required("rank", event.rank);
  v.required("iteration", event.iteration);
  v.required("at", event.at);
}

template <typename V>
void visitFields(V& v, Of<ProgramEnded> auto& event) {
  v.required("rank", event.rank);
  v.required("node", event.node);
  v.required("at", event.at);
  v.required("code", event.code);
  v.required("signal", event.signal);
  v.required("output", event.output);
}

template <typename V>
void visitFields(V& v, Of<Rebuilt> auto& event) {
  v.required("made", event.made);
  v.required("fault", event.fault);
}

template <typename V>
void visitFields(V& v, Of<Told> auto& event) {
  v.required("numbers", event.numbers);
  v.required("problem", event.problem);
}

template <typename V>
void visitFields(V& v, Of<Invalid> auto& event) {
  v.required("because", event.because);
}

}  // namespace event

namespace {

using Line =
    std::variant<Header, RunHeader, event::Started, event::Heard, event::Shrunk, event::Hung,
                 event::Crashed, event::CutOff, event::Repaired, event::Reloaded, event::Failed,
                 event::Progressed, event::ProgramEnded, event::Rebuilt, event::Told,
                 event::Invalid, Observed, reports::MachineLoad, ExperimentFacts>;

// What each kind of line is called, in the order of `Line`.
constexpr std::array<const char*, std::variant_size_v<Line>> kNames = {
    "transcript", "run",      "started",  "heard",  "shrunk",     "hung",          "crashed",
    "cut_off",    "repaired", "reloaded", "failed", "progressed", "program_ended", "rebuilt",
    "told",       "invalid",  "observed", "load",   "experiment"};

template <typename T>
void write(std::ofstream& file, const T& value) {
  Json json;
  json["line"] = kNames[Line(value).index()];
  json.update(JsonWriter<Json>::write(value));
  file << json.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

/// The alternative with this index, read from `json`.
template <std::size_t index = 0>
Result<Line> readLine(std::size_t wanted, const Json& json) {
  if constexpr (index < std::variant_size_v<Line>) {
    if (index != wanted) return readLine<index + 1>(wanted, json);
    std::variant_alternative_t<index, Line> value;
    RETURN_IF_ERROR(JsonReader<Json>::read(json, "", value));
    return Line(std::move(value));
  } else {
    return Status(Code::kInternal, "no such line");
  }
}

Result<Line> parseLine(std::string_view text) {
  ASSIGN_OR_RETURN(const Json json, parseJson<Json>(text));
  const auto name = json.is_object() ? json.find("line") : json.end();
  if (name == json.end() || !name->is_string()) {
    return Status(Code::kInvalidArgument, "this is no line of a transcript");
  }
  const auto found = std::ranges::find(kNames, name->get<std::string>());
  if (found == kNames.end()) {
    return errorf(Code::kInvalidArgument, "this program knows no line '{}'",
                  name->get<std::string>());
  }
  return readLine(static_cast<std::size_t>(found - kNames.begin()), json);
}

/// Puts the lines together again.
class Player {
 public:
  Status take(Line line) {
    return std::visit([this](auto& one) { return play(one); }, line);
  }

  Result<reports::ScenarioResult> result() && {
    if (!facts_) return Status(Code::kInvalidArgument, "it is cut off: there is no last line");
    return analyse(*scenario_, std::move(runs_), *std::move(facts_));
  }

 private:
  Status play(const Header& header) {
    if (header.version != kVersion) {
      return errorf(Code::kUnsupported, "this program replays version {}, found {}", kVersion,
                    header.version);
    }
    scenario::ReadResult read = scenario::readScenario(header.scenario.dump(), "scenario");
    if (!read.ok()) return Status(Code::kInvalidArgument, read.mistakes.front().toString());
    scenario_ = std::move(read.scenario);
    return okStatus();
  }

  Status play(const RunHeader& run) {
    if (!scenario_) return Status(Code::kInvalidArgument, "the scenario is missing");
    const bool drift = run.strategy == scenario_->noise.driftRow.name;
    planned_.strategy = drift ? &scenario_->noise.driftRow : scenario_->find(run.strategy);
    if (planned_.strategy == nullptr) {
      return errorf(Code::kInvalidArgument, "the scenario has no strategy '{}'", run.strategy);
    }
    planned_.block = run.block;
    planned_.arm = armOf(*planned_.strategy);
    if (scenario_->workload.isForeign()) {
      programs_.emplace(*scenario_, planned_);
    } else {
      ranks_.emplace(*scenario_, planned_);
    }
    return okStatus();
  }

  Status play(Observed& observed) {
    if (ranks_) runs_.push_back(ranks_->finish(std::move(observed)));
    if (programs_) runs_.push_back(programs_->finish(std::move(observed)));
    ranks_.reset();
    programs_.reset();
    return okStatus();
  }

  Status play(const reports::MachineLoad& load) {
    if (runs_.empty()) return Status(Code::kInvalidArgument, "it belongs to no run");
    runs_.back().load = load;
    return okStatus();
  }

  Status play(ExperimentFacts& facts) {
    facts_ = std::move(facts);
    return okStatus();
  }

  template <typename Event>
  Status play(const Event& event) {
    if (!ranks_ && !programs_) return Status(Code::kInvalidArgument, "it belongs to no run");
    if (ranks_) ranks_->add(event);
    if (programs_) programs_->add(event);
    return okStatus();
  }

  std::optional<scenario::Scenario> scenario_;
  PlannedRun planned_;
  std::optional<RunRecord> ranks_;         // of the run that is read,
  std::optional<CommandRecord> programs_;  // or this
  std::vector<reports::Run> runs_;
  std::optional<ExperimentFacts> facts_;
};

}  // namespace

Result<Transcript> Transcript::create(const std::string& path, const scenario::Scenario& scenario) {
  std::ofstream file(path);
  if (!file) return Status::fromErrno(errno, "make the transcript " + path);
  write(file, Header{.scenario = scenario::toJson(scenario)});
  return Transcript(path, std::move(file));
}

void Transcript::runBegan(const PlannedRun& planned) {
  write(file_, RunHeader{planned.block, planned.strategy->name});
}

void Transcript::add(const RunEvent& event) {
  std::visit([this](const auto& one) { write(file_, one); }, event);
}

void Transcript::runEnded(const Observed& observed) { write(file_, observed); }

void Transcript::add(const reports::MachineLoad& load) { write(file_, load); }

Status Transcript::finish(const ExperimentFacts& facts) {
  write(file_, facts);
  file_.close();
  if (file_) return okStatus();
  return errorf(Code::kIo, "the transcript {} could not be written", path_);
}

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
