#pragma once

#include <array>
#include <string>
#include <variant>

#include "base/json_fields.h"
#include "harness/record/experiment_facts.h"
#include "harness/record/observed.h"
#include "harness/record/run_events.h"
#include "reports/result_fields.h"
#include "wire/rank.h"

/// The lines of a transcript, and their fields (docs/transcript.md).

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
namespace transcript {

inline constexpr int kVersion = 2;

// The first line.
struct Header {
  int version = kVersion;
  int messages = wire::kVersion;  // of what ranks said
  reports::Json scenario;         // as read, defaults filled in
};

// A run begins.
struct RunHeader {
  int block = 0;
  std::string strategy;
};

template <typename V>
void visitFields(V& v, Of<Header> auto& header) {
  v.required("version", header.version);
  v.required("messages", header.messages);
  v.required("scenario", header.scenario);
}

template <typename V>
void visitFields(V& v, Of<RunHeader> auto& run) {
  v.required("block", run.block);
  v.required("strategy", run.strategy);
}

}  // namespace transcript

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

namespace transcript {

using Line =
    std::variant<Header, RunHeader, event::Started, event::Heard, event::Shrunk, event::Hung,
                 event::Crashed, event::CutOff, event::Repaired, event::Reloaded, event::Failed,
                 event::Progressed, event::ProgramEnded, event::Rebuilt, event::Told,
                 event::Invalid, Observed, reports::MachineLoad, ExperimentFacts>;

// What each kind of line is called, in the order of `Line`.
inline constexpr std::array<const char*, std::variant_size_v<Line>> kNames = {
    "transcript", "run",      "started",  "heard",  "shrunk",     "hung",          "crashed",
    "cut_off",    "repaired", "reloaded", "failed", "progressed", "program_ended", "rebuilt",
    "told",       "invalid",  "observed", "load",   "experiment"};

}  // namespace transcript
}  // namespace faultline::run
