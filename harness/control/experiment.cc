#include "harness/control/experiment.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/printable.h"
#include "harness/control/environment.h"
#include "harness/control/keep_awake.h"
#include "harness/control/load_meter.h"
#include "harness/control/session.h"
#include "harness/control/time_left.h"
#include "harness/record/run_order.h"
#include "harness/record/transcript.h"
#include "reports/headline.h"

namespace faultline::run {
namespace {

std::string outcomeOf(const reports::Run& run) {
  std::string text = reports::nameOf(run.status);
  if (run.throughput)
    text += fmt::format(", {:.2f} {}", run.throughput->value, run.throughput->unit);
  if (!run.failovers.empty()) text += fmt::format(", {} failovers", run.failovers.size());
  if (!run.restarts.empty()) text += fmt::format(", {} restart(s)", run.restarts.size());
  if (!run.shrinks.empty()) text += fmt::format(", {} ranks left", run.shrinks.back().ranks);
  if (!run.rebuilds.empty()) text += fmt::format(", {} rebuilding(s)", run.rebuilds.size());
  if (run.wrong_elements > 0) text += fmt::format(", {} WRONG elements", run.wrong_elements);
  if (run.status != reports::RunStatus::kOk && !run.message.empty()) text += ": " + run.message;
  return text;
}

/// Whether run `next` begins a block, not the first, that would not be over in time together with
/// what stands behind the blocks.
bool isTooLate(const scenario::Scenario& scenario, const std::vector<PlannedRun>& plan,
               std::size_t next, const TimeLeft& time, Duration budget_left) {
  const auto is_of_block = [&](std::size_t run) {
    return plan[run].block == plan[next].block && plan[run].strategy != &scenario.noise.driftRow;
  };
  if (next == 0 || plan[next].block == 0 || !is_of_block(next) || is_of_block(next - 1)) {
    return false;
  }
  std::size_t end = next;
  while (end < plan.size() && is_of_block(end)) ++end;
  const auto block = time.expected(next, end);
  const auto behind = time.expected(plan.size() - scenario.noise.driftRuns, plan.size());
  return block && behind && *block + *behind > budget_left;
}

/// UTC, as result.json has it.
std::string timeOfDay() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

/// A line of log.txt.
void logTo(int fd, Duration at, const std::string& line) {
  const std::string entry = fmt::format("{:10.3f} s  {}\n", toSeconds(at), printable(line));
  (void)!write(fd, entry.data(), entry.size());
}

UniqueFd openLog(const OutputFolder& folder) {
  return UniqueFd(open(folder.logPath().c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

ExperimentOutcome notBegun(const scenario::Scenario& scenario, const ExperimentOptions& options,
                           const Status& why, bool interrupted, TimePoint began) {
  const Duration taken = now() - began;
  ExperimentOutcome outcome;
  outcome.facts = {.scenario_file = options.scenarioFile,
                   .started_at = timeOfDay(),
                   .duration_ms = toMilliseconds(taken),
                   .blocks = scenario.repeat,
                   .interrupted = interrupted,
                   .environment = describeEnvironment({})};
  if (interrupted) return outcome;
  outcome.benchError =
      Status(why.code(), fmt::format("{}, {:.2f} s after the start, before the first run",
                                     why.message(), toSeconds(taken)));
  outcome.facts.bench_error = outcome.benchError.message();
  logTo(openLog(options.folder).get(), taken, outcome.facts.bench_error);
  return outcome;
}

ExperimentOutcome runExperiment(const scenario::Scenario& scenario,
                                const ExperimentOptions& options, Interrupt& interrupt) {
  const TimePoint began = now();
  ExperimentOutcome outcome;
  std::vector<RecordedRun>& runs = outcome.runs;
  ExperimentFacts& facts = outcome.facts;
  facts = {
      .scenario_file = options.scenarioFile, .started_at = timeOfDay(), .blocks = scenario.repeat};

  const UniqueFd log = openLog(options.folder);
  if (!log) {
    outcome.benchError = Status::fromErrno(errno, "open the log " + options.folder.logPath());
  }
  const auto note = [&](const std::string& line) { logTo(log.get(), now() - began, line); };
  const auto say = [&](const std::string& line) {
    options.progress(printable(line));
    note(line);
  };

  std::optional<Transcript> transcript;
  if (!options.transcript.empty() && outcome.benchError.ok()) {
    Result<Transcript> made = Transcript::create(options.transcript, scenario);
    outcome.benchError = made.status();
    if (made.ok()) transcript = *std::move(made);
  }

  Result<UniqueFd> awake = UniqueFd();
  if (scenario.noise.keepAwake && outcome.benchError.ok()) awake = keepProcessorsAwake();
  if (!awake.ok()) outcome.benchError = awake.status();

  std::map<std::string, std::string> clusterFacts;
  const std::vector<PlannedRun> plan = orderRuns(scenario, scenario.seed);
  TimeLeft time(scenario, plan);
  BlockGoodput goodput;
  for (std::size_t i = 0; i < plan.size() && outcome.benchError.ok(); ++i) {
    if (options.isHopeless && !runs.empty() && options.isHopeless(runs.back().run)) {
      facts.notes.push_back(
          fmt::format("--fail-fast: {} of {} runs were made, as no other could make this pass",
                      runs.size(), plan.size()));
      say(facts.notes.back());
      facts.stopped = true;
      break;
    }
    if (options.budget && isTooLate(scenario, plan, i, time, *options.budget - (now() - began))) {
      facts.blocks = plan[i].block;
      facts.notes.push_back(fmt::format(
          "--budget: {} of {} blocks were made, as another would not have been over within {}",
          facts.blocks, scenario.repeat, reports::shortTime(toMilliseconds(*options.budget))));
      say(facts.notes.back());
      i = plan.size() - static_cast<std::size_t>(scenario.noise.driftRuns);
      if (i == plan.size()) break;
    }
    const PlannedRun& planned = plan[i];
    const std::string what = fmt::format("[{}/{}] block {}, {}", i + 1, plan.size(),
                                         planned.block + 1, planned.strategy->name);
    say(what + " ...");
    const bool last = i + 1 == plan.size();
    const TimePoint run_began = now();
    const auto this_one = time.expected(i);
    const auto others = time.expected(i + 1, plan.size());
    const auto tell = [&](std::string_view phase, int iteration) {
      if (!options.moment) return;
      std::optional<Duration> left;
      if (this_one && others) {
        left = *others + std::max(Duration::zero(), *this_one - (now() - run_began));
      }
      options.moment(
          {i, plan.size(), planned.block, planned.strategy->name, phase, iteration, left});
    };
    tell("setting up", -1);
    if (transcript) transcript->runBegan(planned);
    LoadMeter load(now());
    Result<SessionResult> session = runSession(scenario, planned,
                                               {.folder = options.folder,
                                                .logFd = log.get(),
                                                .seed = scenario.seed,
                                                .goodput = &goodput,
                                                .load = &load,
                                                .transcript = transcript ? &*transcript : nullptr,
                                                .keepCluster = options.keep && last,
                                                .progress = tell},
                                               interrupt);
    if (!session.ok()) {
      outcome.benchError = session.status().withContext(what);
      break;
    }
    reports::Run& run = session->recorded.run;
    run.load = load.finish(now());
    if (transcript) transcript->add(*run.load);
    time.finished(i, now() - run_began);
    say(what + ": " + outcomeOf(run));
    if (!session->trouble.empty()) {
      facts.notes.push_back(session->trouble);
      say(facts.notes.back());
    }
    for (const reports::Evidence& evidence : run.evidence) {
      note(fmt::format("    {}: {}", evidence.kind, evidence.observed));
    }
    runs.push_back(std::move(session->recorded));
    clusterFacts = session->cluster;
    if (session->interrupted) {
      facts.interrupted = true;
      break;
    }
    outcome.keptCluster = std::move(session->keptCluster);
  }

  facts.environment = describeEnvironment(clusterFacts);
  facts.environment.nccl = ncclVersionOf(runs, options.folder.path());
  facts.duration_ms = toMilliseconds(now() - began);
  facts.kept_awake = scenario.noise.keepAwake && awake.ok();
  facts.bench_error = outcome.benchError.message();
  if (transcript) {
    const Status written = transcript->finish(facts);
    if (outcome.benchError.ok()) outcome.benchError = written;
    facts.bench_error = outcome.benchError.message();
  }
  return outcome;
}

}  // namespace faultline::run
