#include "harness/record/transcript.h"

#include <cerrno>
#include <variant>

#include "harness/record/transcript_lines.h"
#include "harness/scenario/json.h"

namespace faultline::run {
namespace {

using reports::Json;

template <typename T>
void write(std::ofstream& file, const T& value) {
  Json line;
  line["line"] = transcript::kNames[transcript::Line(value).index()];
  line.update(JsonWriter<Json>::write(value));
  file << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace

Result<Transcript> Transcript::create(const std::string& path, const scenario::Scenario& scenario) {
  std::ofstream file(path);
  if (!file) return Status::fromErrno(errno, "make the transcript " + path);
  write(file, transcript::Header{.scenario = scenario::toJson(scenario)});
  return Transcript(path, std::move(file));
}

void Transcript::runBegan(const PlannedRun& planned) {
  write(file_, transcript::RunHeader{planned.block, planned.strategy->name});
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

}  // namespace faultline::run
