#include "harness/cli/schedule_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "harness/cli/cli.h"
#include "resilient_ccl/reduction/reduce.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/cost.h"
#include "resilient_ccl/schedule/listing.h"
#include "resilient_ccl/schedule/msccl/exporter.h"
#include "resilient_ccl/schedule/msccl/importer.h"
#include "resilient_ccl/schedule/msccl/xml.h"
#include "resilient_ccl/schedule/rerank.h"
#include "resilient_ccl/schedule/segments.h"
#include "resilient_ccl/schedule/verifier.h"

namespace faultline::cli {
namespace {

using nlohmann::json;

/// Operations that `show` prints of a lane unless told otherwise.
constexpr std::int64_t kShownOps = 200;
/// More segments only cost messages.
constexpr int kMostSegments = 128;

/// The flags as typed.
struct ScheduleFlags {
  std::string algorithm;
  std::string import;  ///< file; instead of an algorithm
  int ranks = 0;
  std::vector<std::string> stragglers;
  std::optional<int> segments;
  int window = 0;
  int ranksPerNode = 1;
  double insideBandwidth = 0;
  int rails = 0;
  std::vector<std::string> lostRails;
  bool rerank = false;
  std::string size = "64MiB";
  std::string portModel = "fluid";
  std::string shares = "fluid";
  std::string alpha = "0";
  std::string perMessage = "0";
  std::string bandwidth;
  std::string dtype = "f32";
  int onlyRank = -1;
  int onlyLane = -1;
  std::int64_t maxOps = kShownOps;
  std::string format = "text";
  bool asJson = false;
};

struct Straggler {
  int rank = 0;
  double send = 1;
  double receive = 1;
};

/// The flags understood.
struct Job {
  std::unique_ptr<schedule::Schedule> schedule;
  std::vector<Straggler> stragglers;
  schedule::PortBandwidths bandwidths;
  Bytes size = 0;
  int segments = 1;
  schedule::CostOptions cost;
};

template <typename T>
bool parseNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Result<Bytes> parseSizeOrBytes(const std::string& text) {
  Bytes bytes = 0;
  if (parseNumber(text, bytes)) {
    if (bytes >= 0) return bytes;
    return errorf(Code::kInvalidArgument, "--size {}: a size cannot be negative", text);
  }
  Result<Bytes> parsed = parseSize(text);
  if (!parsed.ok()) return parsed.status().withContext("--size");
  return parsed;
}

Result<std::vector<Straggler>> parseStragglers(const ScheduleFlags& flags) {
  std::vector<Straggler> stragglers;
  for (const std::string& text : flags.stragglers) {
    const std::size_t colon = text.find(':');
    const std::size_t slash = text.find('/');
    Straggler straggler;
    if (colon == std::string::npos || !parseNumber(text.substr(0, colon), straggler.rank) ||
        !parseNumber(text.substr(colon + 1, slash - colon - 1), straggler.send) ||
        !parseNumber(text.substr(slash == std::string::npos ? colon + 1 : slash + 1),
                     straggler.receive)) {
      return errorf(Code::kInvalidArgument,
                    "--straggler {}: expected RANK:R, for example 1:0.5 for half the bandwidth, or "
                    "RANK:SEND/RECEIVE",
                    text);
    }
    if (straggler.rank < 0 || straggler.rank >= flags.ranks) {
      return errorf(Code::kInvalidArgument, "--straggler {}: there is no rank {} among {} ranks",
                    text, straggler.rank, flags.ranks);
    }
    const auto possible = [](double share) { return share > 0 && share <= 1; };
    if (!possible(straggler.send) || !possible(straggler.receive)) {
      return errorf(Code::kInvalidArgument,
                    "--straggler {}: R is the share of bandwidth that is left, above 0 and at "
                    "most 1",
                    text);
    }
    for (const Straggler& other : stragglers) {
      if (other.rank == straggler.rank) {
        return errorf(Code::kInvalidArgument, "--straggler {}: rank {} is given twice", text,
                      straggler.rank);
      }
    }
    stragglers.push_back(straggler);
  }
  return stragglers;
}

Result<schedule::LiveRails> parseRails(const ScheduleFlags& flags) {
  constexpr int kMostRails = 64;
  if (flags.rails < 1 || flags.rails > kMostRails || !flags.stragglers.empty() ||
      flags.ranksPerNode > 1) {
    return errorf(Code::kInvalidArgument,
                  "--lost-rail: needs --rails 1..{}, and goes neither with --straggler nor with "
                  "--ranks-per-node",
                  kMostRails);
  }
  schedule::LiveRails rails;
  rails.rails = flags.rails;
  rails.live.assign(static_cast<std::size_t>(flags.ranks),
                    ~std::uint64_t{0} >> (kMostRails - flags.rails));
  for (const std::string& text : flags.lostRails) {
    const std::size_t colon = text.find(':');
    int rank = -1, rail = -1;
    if (colon == std::string::npos || !parseNumber(text.substr(0, colon), rank) ||
        !parseNumber(text.substr(colon + 1), rail) || rank < 0 || rank >= flags.ranks || rail < 0 ||
        rail >= flags.rails) {
      return errorf(Code::kInvalidArgument,
                    "--lost-rail {}: expected RANK:RAIL among {} ranks and {} rails", text,
                    flags.ranks, flags.rails);
    }
    rails.live[static_cast<std::size_t>(rank)] &= ~(std::uint64_t{1} << rail);
  }
  for (int rank = 0; rank < flags.ranks; ++rank) {
    if (rails.port(rank) == 0) {
      return errorf(Code::kInvalidArgument, "--lost-rail: rank {} has no rail left", rank);
    }
  }
  return rails;
}

/// "0.001" (in units of S/B), or "5us" together with --bandwidth.
Result<double> parseCostTime(const std::string& flag, const std::string& text,
                             const std::string& bandwidth, Bytes size) {
  double value = 0;
  if (!parseNumber(text, value)) {
    Result<Duration> duration = parseDuration(text);
    if (!duration.ok()) {
      return errorf(Code::kInvalidArgument,
                    "{} {}: expected a multiple of the time that the buffer needs through a "
                    "healthy port, such as 0.001, or a duration such as 5us",
                    flag, text);
    }
    if (bandwidth.empty()) {
      return errorf(Code::kInvalidArgument,
                    "{} {}: a duration needs --bandwidth RATE to compare it with", flag, text);
    }
    Result<BitsPerSecond> rate = parseRate(bandwidth);
    if (!rate.ok()) return rate.status().withContext("--bandwidth");
    if (*rate <= 0 || size <= 0) {
      return errorf(Code::kInvalidArgument, "{} {}: needs a size and a bandwidth above zero", flag,
                    text);
    }
    constexpr double kBitsPerByte = 8;
    value = toSeconds(*duration) * static_cast<double>(*rate) /
            (kBitsPerByte * static_cast<double>(size));
  }
  if (!(value >= 0) || !std::isfinite(value)) {
    return errorf(Code::kInvalidArgument, "{} {}: must not be negative", flag, text);
  }
  return value;
}

Result<schedule::msccl::Algo> readMsccl(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return errorf(Code::kNotFound, "--import {}: cannot be read", path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  auto algo = schedule::msccl::fromXml(text);
  if (!algo.ok()) return algo.status().withContext("--import " + path);
  return algo;
}

/// Flags that make no sense together with a schedule from a file, or without one.
Status checkImport(const ScheduleFlags& flags) {
  if (flags.import.empty()) {
    if (!flags.algorithm.empty() && flags.ranks != 0) return okStatus();
    return errorf(Code::kInvalidArgument, "needs --algorithm and --ranks, or --import FILE");
  }
  if (!flags.algorithm.empty() || flags.ranks != 0 || flags.segments || flags.window != 0 ||
      flags.rerank) {
    return errorf(Code::kInvalidArgument,
                  "--import: the file says which ranks and operations there are; goes neither with "
                  "--algorithm, --ranks, --segments nor --window, --rerank");
  }
  return okStatus();
}

Result<Job> understand(ScheduleFlags flags) {
  RETURN_IF_ERROR(checkImport(flags));
  std::optional<schedule::msccl::Algo> imported;
  if (!flags.import.empty()) {
    ASSIGN_OR_RETURN(imported, readMsccl(flags.import));
    flags.ranks = static_cast<int>(imported->gpus.size());
  }
  if (flags.ranks < 1) {
    return errorf(Code::kInvalidArgument, "--ranks {}: at least 1 rank is needed", flags.ranks);
  }
  Job job;
  ASSIGN_OR_RETURN(job.size, parseSizeOrBytes(flags.size));
  ASSIGN_OR_RETURN(job.stragglers, parseStragglers(flags));
  job.bandwidths = std::vector<double>(static_cast<std::size_t>(flags.ranks), 1.0);
  for (const Straggler& straggler : job.stragglers) {
    job.bandwidths.send[static_cast<std::size_t>(straggler.rank)] = straggler.send;
    job.bandwidths.receive[static_cast<std::size_t>(straggler.rank)] = straggler.receive;
  }
  const auto portModel = [](const std::string& name) {
    return name == "fluid" ? schedule::PortModel::kFluid : schedule::PortModel::kOnePort;
  };
  job.cost.portModel = portModel(flags.portModel);
  ASSIGN_OR_RETURN(job.cost.alpha,
                   parseCostTime("--alpha", flags.alpha, flags.bandwidth, job.size));
  ASSIGN_OR_RETURN(job.cost.perMessage,
                   parseCostTime("--per-message", flags.perMessage, flags.bandwidth, job.size));
  const std::int64_t elementSize = reduction::sizeOf(*reduction::dataTypeFromName(flags.dtype));
  schedule::ScheduleRequest request;
  job.segments = flags.segments.value_or(1);
  request.ranks = flags.ranks;
  // The last element of a size that is no multiple of the type counts as a whole one.
  request.elements = job.size / elementSize + (job.size % elementSize != 0 ? 1 : 0);
  request.segments = job.segments;
  request.window = flags.window;
  request.ranksPerNode = job.cost.ranksPerNode = flags.ranksPerNode;
  if (flags.insideBandwidth > 0) job.cost.insideBandwidth = flags.insideBandwidth;
  request.bandwidths = job.bandwidths;
  request.shares = portModel(flags.shares);
  const auto make = [&]() -> Result<std::unique_ptr<schedule::Schedule>> {
    if (imported) return schedule::msccl::importSchedule(*imported, request.elements);
    auto made = schedule::makeSchedule(flags.algorithm, request);
    const schedule::MessageCost message{job.cost.alpha, job.cost.perMessage};
    if (!made.ok() || flags.segments || (message.alpha == 0 && message.perMessage == 0)) {
      return made;
    }
    job.segments = request.segments =
        schedule::bestSegments(flags.algorithm, request, message, kMostSegments);
    return schedule::makeSchedule(flags.algorithm, request);
  };
  if (flags.lostRails.empty()) {
    ASSIGN_OR_RETURN(job.schedule, make());
    return job;
  }
  ASSIGN_OR_RETURN(const schedule::LiveRails rails, parseRails(flags));
  std::vector<int> order(static_cast<std::size_t>(flags.ranks));
  std::iota(order.begin(), order.end(), 0);
  if (flags.rerank) order = schedule::rerank(rails);
  std::vector<double> inOrder;
  for (int rank = 0; rank < flags.ranks; ++rank) {
    job.bandwidths.send[static_cast<std::size_t>(rank)] = rails.port(rank);
    inOrder.push_back(rails.port(order[static_cast<std::size_t>(rank)]));
  }
  job.bandwidths.receive = job.bandwidths.send;
  job.cost.links = rails.links();
  request.bandwidths = inOrder;
  ASSIGN_OR_RETURN(job.schedule, make());
  if (flags.rerank && job.schedule->collective() != schedule::Collective::kAllReduce) {
    return errorf(Code::kInvalidArgument, "--rerank: {} is no AllReduce, its ranks have places",
                  flags.algorithm);
  }
  job.schedule = schedule::reordered(std::move(job.schedule), std::move(order));
  return job;
}

int fail(const Status& status) {
  fmt::print(stderr, "schedule: {}\n", status.message());
  return kExitUsage;
}

json headOf(const ScheduleFlags& flags, const Job& job) {
  json stragglers = json::array();
  for (const Straggler& straggler : job.stragglers) {
    json entry = {{"rank", straggler.rank}, {"r", std::min(straggler.send, straggler.receive)}};
    if (straggler.send != straggler.receive) {
      entry["send"] = straggler.send;
      entry["receive"] = straggler.receive;
    }
    stragglers.push_back(std::move(entry));
  }
  return {{"algorithm", job.schedule->algorithm()},
          {"ranks", job.schedule->ranks()},
          {"ranks_per_node", flags.ranksPerNode},
          {"segments", job.segments},
          {"size_bytes", job.size},
          {"elements", job.schedule->elements()},
          {"dtype", flags.dtype},
          {"stragglers", std::move(stragglers)}};
}

int verify(const ScheduleFlags& flags, const Job& job) {
  return verifyAndPrint(*job.schedule, flags.asJson ? headOf(flags, job) : json());
}

int cost(const ScheduleFlags& flags, const Job& job) {
  const auto cost = schedule::costOf(*job.schedule, job.bandwidths, job.cost);
  if (!cost.ok()) return fail(cost.status());
  if (flags.asJson) {
    json out = headOf(flags, job);
    out["port_model"] = flags.portModel;
    out["alpha"] = job.cost.alpha;
    out["per_message"] = job.cost.perMessage;
    out["time_over_ring"] = cost->timeOverRing;
    out["bound_over_ring"] = cost->boundOverRing;
    out["time_over_bound"] = cost->timeOverBound;
    out["messages_per_rank_max"] = cost->messagesPerRankMax;
    out["depth"] = cost->depth;
    out["from_steps"] = cost->fromSteps;
    fmt::print("{}\n", out.dump(2));
    return kExitOk;
  }
  fmt::print("{}, {} ranks, {} segments, {}, {} ports\n", job.schedule->algorithm(),
             job.schedule->ranks(), job.segments, formatSize(job.size), flags.portModel);
  for (const Straggler& straggler : job.stragglers) {
    if (straggler.send == straggler.receive) {
      fmt::print("  rank {} at {} of its bandwidth\n", straggler.rank, straggler.send);
    } else {
      fmt::print("  rank {} at {} of its bandwidth for sending, {} for receiving\n", straggler.rank,
                 straggler.send, straggler.receive);
    }
  }
  fmt::print("  time / fault-free ring   {:.4f}\n", cost->timeOverRing);
  fmt::print("  bound / fault-free ring  {:.4f}\n", cost->boundOverRing);
  fmt::print("  time / bound             {:.4f}\n", cost->timeOverBound);
  fmt::print("  messages per rank, max   {}\n", cost->messagesPerRankMax);
  fmt::print("  depth                    {}\n", cost->depth);
  return kExitOk;
}

json opAsJson(const schedule::Op& op) {
  json out = {{"kind", schedule::kindName(op.kind)},
              {"offset", op.piece.offset},
              {"count", op.piece.count}};
  if (op.kind == schedule::OpKind::kCopy) {
    out["source_offset"] = op.source.offset;
  } else {
    out["peer"] = op.peer;
  }
  out["waits"] = json::array();
  for (int i = 0; i < op.waitCount; ++i) {
    const schedule::Wait& wait = op.waits[static_cast<std::size_t>(i)];
    out["waits"].push_back({{"lane", wait.lane}, {"op", wait.op}, {"count", wait.count}});
  }
  return out;
}

int showAsMsccl(const schedule::Schedule& plan) {
  const auto algo = schedule::msccl::exportSchedule(plan);
  if (!algo.ok()) return fail(algo.status());
  const auto xml = schedule::msccl::toXml(*algo);
  if (!xml.ok()) return fail(xml.status());
  fmt::print("{}", *xml);
  return kExitOk;
}

int show(const ScheduleFlags& flags, const Job& job) {
  const schedule::Schedule& plan = *job.schedule;
  if (flags.onlyRank >= plan.ranks() || flags.onlyLane >= plan.lanes()) {
    return fail(errorf(Code::kInvalidArgument, "there are {} ranks and {} lanes, counted from 0",
                       plan.ranks(), plan.lanes()));
  }
  if (flags.format == "msccl-xml") return showAsMsccl(plan);
  json lanes = json::array();
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    if (flags.onlyRank >= 0 && rank != flags.onlyRank) continue;
    for (int lane = 0; lane < plan.lanes(); ++lane) {
      if (flags.onlyLane >= 0 && lane != flags.onlyLane) continue;
      if (!flags.asJson) {
        fmt::print("{}", schedule::listLane(plan, rank, lane, flags.maxOps));
        continue;
      }
      json ops = json::array();
      const std::int64_t total = plan.opCount(rank, lane);
      for (std::int64_t i = 0; i < total && (flags.maxOps < 0 || i < flags.maxOps); ++i) {
        ops.push_back(opAsJson(plan.op(rank, lane, i)));
      }
      lanes.push_back(
          {{"rank", rank}, {"lane", lane}, {"operations", total}, {"ops", std::move(ops)}});
    }
  }
  if (flags.asJson) {
    json out = headOf(flags, job);
    out["lanes"] = std::move(lanes);
    fmt::print("{}\n", out.dump(2));
  }
  return kExitOk;
}

void addCommonFlags(CLI::App& verb, ScheduleFlags& flags) {
  verb.add_option("--algorithm", flags.algorithm, "see `faultline list algorithms`");
  verb.add_option("--ranks", flags.ranks, "number of ranks, at least 1");
  verb.add_option("--import", flags.import,
                  "a schedule from a file in MSCCL XML, instead of an algorithm and ranks");
  verb.add_option(
      "--straggler", flags.stragglers,
      "RANK:R, a rank with the share R of its bandwidth left, or RANK:SEND/RECEIVE; may "
      "be repeated");
  verb.add_option("--segments", flags.segments,
                  "parts that the buffer is worked on in; not given: 1, or what --alpha and "
                  "--per-message make best by formula");
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
      ->check(CLI::IsMember(std::vector<std::string>(reduction::kDataTypeNames.begin(),
                                                     reduction::kDataTypeNames.end())))
      ->capture_default_str();
  verb.add_option("--port-model", flags.portModel, "how flows share a port")
      ->check(CLI::IsMember({"one_port", "fluid"}))
      ->capture_default_str();
  verb.add_option("--shares", flags.shares,
                  "which model the shares of unequal ranks are made for (ring has equal ones)")
      ->check(CLI::IsMember({"fluid", "one_port"}))
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
  if (!report.ok()) return fail(report.status());
  if (!head.is_null()) {
    head["ok"] = report->ok();
    head["operations"] = report->operations;
    head["more_problems"] = report->moreProblems;
    head["problems"] = json::array();
    for (const schedule::Problem& problem : report->problems) {
      head["problems"].push_back({{"rank", problem.rank},
                                  {"lane", problem.lane},
                                  {"op", problem.op},
                                  {"text", problem.text}});
    }
    fmt::print("{}\n", head.dump(2));
  } else {
    for (const schedule::Problem& problem : report->problems) {
      fmt::print("rank {} lane {} op {}: {}\n", problem.rank, problem.lane, problem.op,
                 problem.text);
    }
    if (report->moreProblems > 0) fmt::print("... and {} more\n", report->moreProblems);
    fmt::print("{}: {} ranks, {} operations: {}\n", schedule.algorithm(), report->ranks,
               report->operations, report->ok() ? "correct" : "WRONG");
  }
  return report->ok() ? kExitOk : kExitExpectation;
}

CLI::App* addScheduleCommand(CLI::App& app, int& exitCode) {
  auto flags = std::make_shared<ScheduleFlags>();
  CLI::App* command = app.add_subcommand("schedule", "check, cost or print a schedule");
  command->require_subcommand(1);
  const auto addVerb = [&](const char* name, const char* description,
                           int (*act)(const ScheduleFlags&, const Job&)) {
    CLI::App* verb = command->add_subcommand(name, description);
    addCommonFlags(*verb, *flags);
    verb->callback([flags, act, &exitCode] {
      const Result<Job> job = understand(*flags);
      exitCode = job.ok() ? act(*flags, *job) : fail(job.status());
    });
    return verb;
  };
  addVerb("verify", "prove that every rank ends with every contribution exactly once", verify);
  addVerb("cost", "time against the fault-free ring and against the lower bound", cost);
  CLI::App* shown = addVerb("show", "print the operations", show);
  shown->add_option("--rank", flags->onlyRank, "only this rank");
  shown->add_option("--lane", flags->onlyLane, "only this lane");
  shown->add_option("--max-ops", flags->maxOps, "operations per lane; -1 for all")
      ->capture_default_str();
  shown->add_option("--format", flags->format, "msccl-xml: an algorithm that MSCCL loads")
      ->check(CLI::IsMember({"text", "msccl-xml"}))
      ->capture_default_str();
  return command;
}

}  // namespace faultline::cli
