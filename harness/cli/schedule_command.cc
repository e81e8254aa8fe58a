#include "harness/cli/schedule_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/units.h"
#include "harness/cli/cli.h"
#include "harness/cli/output.h"
#include "harness/cli/schedule_export.h"
#include "harness/cli/schedule_job.h"
#include "resilient_ccl/reduction/reduce.h"
#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/listing.h"
#include "resilient_ccl/schedule/msccl/xml.h"
#include "resilient_ccl/schedule/r2_formula.h"
#include "resilient_ccl/schedule/verifier.h"
#include "resilient_ccl/schedule/written/schedule_json.h"

namespace faultline::cli {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 2> kPortModels{"fluid", "one_port"};
constexpr std::array<std::string_view, 2> kFormats{"text", "msccl-xml"};
constexpr const char* kVerifyExamples =
    "  faultline schedule verify --algorithm r2_allreduce --ranks 8 --straggler 1:0.5 --segments "
    "16\n";
constexpr const char* kCostExamples =
    R"(  faultline schedule cost --algorithm optcc --ranks 8 --straggler 1:0.5 --segments 32
  faultline schedule cost --algorithm optcc --ranks 32 --straggler 1:0.5 --size 1GiB \
    --bandwidth 400Gbit --alpha 5us --per-message 500ns
)";
constexpr const char* kShowExamples =
    R"(  faultline schedule show --algorithm ring --ranks 4 --rank 0
  faultline schedule show --algorithm ring --ranks 4 --format msccl-xml
)";

/// As setFooter() of the other verbs.
std::string footerOf(const std::string& examples) {
  return "examples:\n" + examples +
         "\nexit codes: 0 as it should be, 1 the schedule is wrong, 2 usage mistake";
}

int usageMistake(const Status& status) {
  fmt::print(stderr, "schedule: {}\n", printableMessage(status.message()));
  return kExitUsage;
}

json headOf(const ScheduleFlags& flags, const ScheduleJob& job) {
  json stragglers = json::array();
  for (const Straggler& straggler : job.stragglers) {
    json entry = {{"rank", straggler.rank}, {"r", std::min(straggler.send, straggler.receive)}};
    if (straggler.send != straggler.receive) {
      entry["send"] = straggler.send;
      entry["receive"] = straggler.receive;
    }
    stragglers.push_back(std::move(entry));
  }
  return {
      {"algorithm", job.schedule->algorithm()},
      {"ranks", job.schedule->ranks()},
      {"ranks_per_node", flags.ranksPerNode},
      {"segments", job.segments ? json(*job.segments) : json()},
      {"segments_chosen", job.segmentsChosen},
      {"size_bytes", job.size},
      {"elements", schedule::dataElements(job.schedule->collective(), job.schedule->elements())},
      {"dtype", flags.dtype},
      {"stragglers", std::move(stragglers)}};
}

int verify(const ScheduleFlags& flags, const ScheduleJob& job) {
  return verifyAndPrint(*job.schedule, flags.asJson ? headOf(flags, job) : json());
}

/// Where the authors of the algorithm have one.
std::optional<schedule::R2Formula> formulaOf(const ScheduleFlags& flags, const ScheduleJob& job) {
  if (flags.algorithm != "r2_allreduce" || flags.ranksPerNode > 1 || !job.segments) {
    return std::nullopt;
  }
  return schedule::r2Formula({.ranks = job.schedule->ranks(),
                              .elements = job.schedule->elements(),
                              .segments = *job.segments,
                              .bandwidths = job.bandwidths},
                             job.bandwidths);
}

constexpr std::string_view nameOf(schedule::PortModel model) {
  return model == schedule::PortModel::kFluid ? "fluid" : "one_port";
}

/// Of one model of the ports.
struct ModelCost {
  schedule::PortModel model;
  schedule::Cost cost;
};

/// One per model that is asked for.
Result<std::vector<ModelCost>> costsOf(const ScheduleJob& job) {
  std::vector<ModelCost> costs;
  for (const schedule::PortModel model : job.portModels) {
    schedule::CostOptions options = job.cost;
    options.portModel = model;
    ASSIGN_OR_RETURN(const schedule::Cost cost,
                     schedule::costOf(*job.schedule, job.bandwidths, options));
    costs.push_back({model, cost});
  }
  return costs;
}

json asJson(const schedule::Cost& cost) {
  return {{"time_over_ring", cost.timeOverRing},
          {"bound_over_ring", cost.boundOverRing},
          {"time_over_bound", cost.timeOverBound},
          {"from_steps", cost.fromSteps}};
}

void printAsJson(const ScheduleFlags& flags, const ScheduleJob& job,
                 const std::vector<ModelCost>& costs,
                 const std::optional<schedule::R2Formula>& formula) {
  const schedule::Cost& first = costs.front().cost;
  json out = headOf(flags, job);
  out["port_model"] = nameOf(costs.front().model);
  out["alpha"] = job.cost.alpha;
  out["per_message"] = job.cost.perMessage;
  out.update(asJson(first));
  if (formula) {
    out["formula_over_ring"] = formula->timeOverRing;
    out["formula_chunks"] = formula->chunks ? json(*formula->chunks) : json();
    out["time_over_formula"] = first.timeOverRing / formula->timeOverRing;
  }
  out["messages_per_rank_max"] = first.messagesPerRankMax;
  out["depth"] = first.depth;
  for (const ModelCost& one : costs) out["models"][nameOf(one.model)] = asJson(one.cost);
  fmt::print("{}\n", out.dump(2, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace));
}

/// A line of the table, with a column for each model.
void printRow(std::string_view name, const std::vector<ModelCost>& costs,
              double schedule::Cost::*value) {
  std::string line = fmt::format("  {:<23}", name);
  for (const ModelCost& one : costs) line += fmt::format("  {:<8.4f}", one.cost.*value);
  fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
}

int cost(const ScheduleFlags& flags, const ScheduleJob& job) {
  const auto costs = costsOf(job);
  if (!costs.ok()) return usageMistake(costs.status());
  const schedule::Cost& first = costs->front().cost;
  const auto formula = formulaOf(flags, job);
  if (flags.asJson) {
    printAsJson(flags, job, *costs, formula);
    return kExitOk;
  }
  const std::string segments =
      job.segments ? fmt::format("{} segment{}{}", *job.segments, *job.segments == 1 ? "" : "s",
                                 job.segmentsChosen ? " (the best by the model)" : "")
                   : "from a file";
  fmt::print("{}, {} ranks, {}, {}\n", printable(job.schedule->algorithm()), job.schedule->ranks(),
             segments, formatSize(job.size));
  if (job.cost.alpha > 0 || job.cost.perMessage > 0) {
    fmt::print("  latency {:.3g}, per message {:.3g} of what the buffer takes through a port\n",
               job.cost.alpha, job.cost.perMessage);
  }
  for (const Straggler& straggler : job.stragglers) {
    if (straggler.send == straggler.receive) {
      fmt::print("  rank {} at {} of its bandwidth\n", straggler.rank, straggler.send);
    } else {
      fmt::print("  rank {} at {} of its bandwidth for sending, {} for receiving\n", straggler.rank,
                 straggler.send, straggler.receive);
    }
  }
  std::string head(std::string("  time / fault-free ring ").size(), ' ');
  for (const ModelCost& one : *costs) head += fmt::format("  {:<8}", nameOf(one.model));
  fmt::print("{}\n", head.substr(0, head.find_last_not_of(' ') + 1));
  printRow("time / fault-free ring", *costs, &schedule::Cost::timeOverRing);
  printRow("bound / fault-free ring", *costs, &schedule::Cost::boundOverRing);
  printRow("time / bound", *costs, &schedule::Cost::timeOverBound);
  if (formula) {
    fmt::print("  formula of its authors   {:.4f} ({})\n", formula->timeOverRing,
               formula->chunks ? fmt::format("K = {}", *formula->chunks) : "a ring alone");
    fmt::print("  time / formula           {:.4f}\n", first.timeOverRing / formula->timeOverRing);
  }
  for (const ModelCost& one : *costs) {
    if (!one.cost.fromSteps) continue;
    fmt::print("  {}: of macro steps, in which {}\n", nameOf(one.model),
               one.model == schedule::PortModel::kFluid
                   ? "each cycle takes as long as its busiest port: too many messages to play"
                   : "ports carry messages in the order of the steps");
  }
  fmt::print("  messages per rank, max   {}\n", first.messagesPerRankMax);
  fmt::print("  depth                    {}\n", first.depth);
  return kExitOk;
}

int showAsMsccl(const ScheduleFlags& flags, const ScheduleJob& job) {
  const auto made = exportForMsccl(flags, job);
  if (!made.ok()) return usageMistake(made.status());
  const auto xml = schedule::msccl::toXml(made->algo);
  if (!xml.ok()) return usageMistake(xml.status());
  if (!made->told.empty()) fmt::print(stderr, "schedule: {}\n", made->told);
  fmt::print("{}", *xml);
  return kExitOk;
}

int show(const ScheduleFlags& flags, const ScheduleJob& job) {
  const schedule::Schedule& plan = *job.schedule;
  if (flags.onlyRank >= plan.ranks() || flags.onlyLane >= plan.lanes()) {
    return usageMistake(errorf(Code::kInvalidArgument,
                               "there are {} ranks and {} lanes, counted from 0", plan.ranks(),
                               plan.lanes()));
  }
  if (flags.format == "msccl-xml") return showAsMsccl(flags, job);
  if (job.segmentsChosen) {
    fmt::print(stderr, "schedule: {} segments, the best by the model; --segments sets them\n",
               *job.segments);
  }
  json lanes = json::array();
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    if (flags.onlyRank >= 0 && rank != flags.onlyRank) continue;
    for (int lane = 0; lane < plan.lanes(); ++lane) {
      if (flags.onlyLane >= 0 && lane != flags.onlyLane) continue;
      if (!flags.asJson) {
        fmt::print("{}", schedule::listLane(plan, rank, lane, flags.maxOps));
        continue;
      }
      lanes.push_back(schedule::laneAsJson(plan, rank, lane, flags.maxOps));
    }
  }
  if (flags.asJson) {
    json out = headOf(flags, job);
    out.update(schedule::headAsJson(plan));
    out["lanes"] = std::move(lanes);
    fmt::print("{}\n", out.dump(2, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace));
  }
  return kExitOk;
}

void addCommonFlags(CLI::App& verb, ScheduleFlags& flags) {
  verb.add_option("--algorithm", flags.algorithm, "see `faultline list algorithms`");
  verb.add_option("--ranks", flags.ranks, "number of ranks, at least 1");
  verb.add_option(
      "--import", flags.import,
      "a schedule from a file, instead of an algorithm and ranks: MSCCL XML, or JSON as "
      "'show --json --max-ops -1' prints it");
  verb.add_option(
      "--straggler", flags.stragglers,
      "RANK:R, a rank with the share R of its bandwidth left, or RANK:SEND/RECEIVE; may "
      "be repeated");
  verb.add_option(
      "--segments", flags.segments,
      "parts that the buffer is worked on in; not given: what is best by the model, with "
      "--alpha and --per-message (of verify: 1 without them)");
  verb.add_option("--window", flags.window,
                  "receives of a kind that are granted at a time (optcc); 0 = one from every peer")
      ->capture_default_str();
  verb.add_option("--ranks-per-node", flags.ranksPerNode,
                  "ranks that share the NICs of a node; a straggler then slows its node")
      ->capture_default_str();
  verb.add_option(
          "--inside-bandwidth", flags.insideBandwidth,
          "per rank inside a node, as a multiple of a healthy node's NICs; 0 = takes no time")
      ->capture_default_str();
  verb.add_option("--rails", flags.rails, "rails of each rank, of which some are lost");
  verb.add_option("--lost-rail", flags.lostRails,
                  "RANK:RAIL; two ranks talk over the rails that both still have; may be repeated");
  verb.add_flag("--rerank", flags.rerank,
                "order the ranks so that neighbours have many rails in common");
  verb.add_option("--size", flags.size, "buffer per rank, in bytes or with a unit")
      ->capture_default_str();
  verb.add_option("--dtype", flags.dtype, "element type")
      ->check(oneOf(reduction::kDataTypeNames))
      ->capture_default_str();
  verb.add_option("--port-model", flags.portModel,
                  "how flows share a port; not given: both, side by side, with the segments and "
                  "the formula for fluid ports")
      ->check(oneOf(kPortModels));
  verb.add_option("--shares", flags.shares,
                  "which model the shares of unequal ranks are made for (ring has equal ones)")
      ->check(oneOf(kPortModels))
      ->capture_default_str();
  verb.add_option("--alpha", flags.alpha,
                  "latency of a message: a multiple of the time S/B that the buffer needs through "
                  "a healthy port, or a duration with --bandwidth")
      ->capture_default_str();
  verb.add_option("--per-message", flags.perMessage,
                  "time a message occupies its ports besides its data; units as --alpha")
      ->capture_default_str();
  verb.add_option("--bandwidth", flags.bandwidth, "of a healthy port, e.g. 400Gbit");
  verb.add_flag("--json", flags.asJson, "print JSON");
}

}  // namespace

int verifyAndPrint(const schedule::Schedule& schedule, nlohmann::json head) {
  const auto report = schedule::verifySchedule(schedule);
  if (!report.ok()) return usageMistake(report.status());
  if (!head.is_null()) {
    head["ok"] = report->ok();
    head["operations"] = report->operations;
    head["more_problems"] = report->moreProblems;
    head["counted_all"] = report->countedAll;
    head["problems"] = json::array();
    for (const schedule::Problem& problem : report->problems) {
      head["problems"].push_back({{"rank", problem.rank},
                                  {"lane", problem.lane},
                                  {"op", problem.op},
                                  {"text", problem.text}});
    }
    fmt::print("{}\n", head.dump(2, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace));
  } else {
    for (const schedule::Problem& problem : report->problems) {
      fmt::print("rank {} lane {} op {}: {}\n", problem.rank, problem.lane, problem.op,
                 problem.text);
    }
    if (report->moreProblems > 0) {
      fmt::print("... and {}{} more\n", report->countedAll ? "" : "at least ",
                 report->moreProblems);
    }
    fmt::print("{}: {} ranks, {} operations: {}\n", printable(schedule.algorithm()), report->ranks,
               report->operations, report->ok() ? "correct" : "WRONG");
  }
  return report->ok() ? kExitOk : kExitExpectation;
}

CLI::App* addScheduleCommand(CLI::App& app, int& exitCode) {
  auto flags = std::make_shared<ScheduleFlags>();
  CLI::App* command = app.add_subcommand("schedule", "Check, cost or print a schedule");
  command->require_subcommand(1);
  const auto addVerb = [&](const char* name, const char* description,
                           int (*act)(const ScheduleFlags&, const ScheduleJob&)) {
    CLI::App* verb = command->add_subcommand(name, description);
    addCommonFlags(*verb, *flags);
    verb->callback([flags, act, verb, &exitCode] {
      flags->bestSegments = act != verify;  // a proof holds for any number
      flags->sizeGiven = verb->count("--size") > 0;
      const Result<ScheduleJob> job = understand(*flags);
      exitCode = job.ok() ? act(*flags, *job) : usageMistake(job.status());
    });
    return verb;
  };
  addVerb("verify", "Prove that every rank ends with every contribution exactly once", verify)
      ->footer(footerOf(kVerifyExamples));
  addVerb("cost", "Say its time against the fault-free ring and against the lower bound", cost)
      ->footer(footerOf(kCostExamples));
  CLI::App* shown = addVerb("show", "Print the operations", show);
  shown->add_option("--rank", flags->onlyRank, "only this rank");
  shown->add_option("--lane", flags->onlyLane, "only this lane");
  shown->add_option("--max-ops", flags->maxOps, "operations per lane; -1 for all")
      ->capture_default_str();
  shown->add_option("--format", flags->format, "msccl-xml: an algorithm that MSCCL loads")
      ->check(oneOf(kFormats))
      ->capture_default_str();
  shown->footer(footerOf(kShowExamples));
  command->footer(footerOf(std::string(kVerifyExamples) + kCostExamples + kShowExamples));
  return command;
}

}  // namespace faultline::cli
