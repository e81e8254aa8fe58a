#include "harness/nccl_bench/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/text.h"
#include "base/units.h"
#include "harness/workload/data.h"

namespace faultline::nccl_bench {
namespace {

using reduction::DataType;
using schedule::Collective;

// Those that nccl_bench calls; broadcast and reduce are not asked for by what it is compared with.
constexpr std::array kCalled{Collective::kAllReduce, Collective::kAllGather,
                             Collective::kReduceScatter, Collective::kAllToAll,
                             Collective::kSendRecv};
constexpr int kMostPort = 65535;

/// Sizes as nccl-tests takes them: 8, 8K, 64M, 1G, powers of 1024.
std::optional<Bytes> sizeOf(std::string text) {
  if (const Result<Bytes> size = parseSize(text); size.ok()) return *size;
  constexpr std::string_view kSuffixes = "KMG";
  int shift = 0;
  constexpr int kBitsOfStep = 10;
  if (!text.empty()) {
    if (const auto at = kSuffixes.find(text.back()); at != std::string_view::npos) {
      shift = kBitsOfStep * (static_cast<int>(at) + 1);
      text.pop_back();
    }
  }
  Bytes value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  constexpr Bytes kMost = Bytes{1} << 40;  // 1 TiB: more than a GPU has
  if (error != std::errc() || stop != end || value <= 0 || value > (kMost >> shift)) {
    return std::nullopt;
  }
  return value << shift;
}

Result<Bytes> readSize(const char* option, const std::string& text) {
  if (const auto size = sizeOf(text)) return *size;
  return errorf(Code::kInvalidArgument, "{} {}: no size; write it like 8, 8K, 64M or 64MiB", option,
                text);
}

/// A whole number from the environment.
Result<int> readNumber(const char* name, const char* text, int least, int most) {
  const std::string_view all(text);
  int value = 0;
  const auto [stop, error] = std::from_chars(all.data(), all.data() + all.size(), value);
  if (error == std::errc() && stop == all.data() + all.size() && value >= least && value <= most) {
    return value;
  }
  return errorf(Code::kInvalidArgument, "{}={}: it must be a number from {} to {}", name, text,
                least, most);
}

using Lookup = const char* (*)(const char*);

Status readEnvironment(Lookup variable, Options& options) {
  const auto number = [&](const char* name, int least, int most, int& value) -> Status {
    if (const char* const text = variable(name)) {
      ASSIGN_OR_RETURN(value, readNumber(name, text, least, most));
    }
    return okStatus();
  };
  constexpr int kMostRanks = 1 << 16;
  RETURN_IF_ERROR(number("WORLD_SIZE", 1, kMostRanks, options.ranks));
  RETURN_IF_ERROR(number("RANK", 0, options.ranks - 1, options.rank));
  RETURN_IF_ERROR(number("LOCAL_RANK", 0, kMostRanks, options.gpu));
  RETURN_IF_ERROR(number("MASTER_PORT", 1, kMostPort, options.port));
  if (const char* const text = variable("MASTER_ADDR")) options.rootAddress = text;
  options.address = options.rank == 0 ? options.rootAddress : "0.0.0.0";
  if (const char* const text = variable("FAULTLINE_ADDRESS")) options.address = text;
  if (const char* const text = variable("FAULTLINE_PROGRESS")) options.progressFile = text;
  if (const char* const text = variable("FAULTLINE_NCCL_RECOVERY_FILE")) {
    options.recoveryFile = text;
  }
  if (const char* const text = variable("FAULTLINE_NCCL_RECOVERY")) {
    const std::string_view mode(text);
    if (mode == "abort_reinit") {
      options.recovery = Recovery::kAbortReinit;
    } else if (mode == "shrink") {
      options.recovery = Recovery::kShrink;
    } else if (mode != "none") {
      return errorf(Code::kUnsupported,
                    "FAULTLINE_NCCL_RECOVERY={}: nccl_bench knows abort_reinit and shrink", mode);
    }
  }
  if (const char* const text = variable("FAULTLINE_INTERFACES")) {
    std::istringstream names(text);
    for (std::string name; std::getline(names, name, ',');) {
      if (!name.empty()) options.interfaces.push_back(name);
    }
  }
  int wait_ms = 0;
  constexpr int kMostWait = 86'400'000;  // a day
  RETURN_IF_ERROR(number("FAULTLINE_NCCL_WAIT_MS", 1, kMostWait, wait_ms));
  if (options.recovery != Recovery::kNone && wait_ms > 0)
    options.wait = std::chrono::milliseconds(wait_ms);
  return okStatus();
}

template <typename T>
Result<T> named(const char* option, const std::string& text, std::optional<T> found,
                std::span<const std::string_view> known) {
  if (found) return *found;
  return errorf(Code::kInvalidArgument, "{} {}: there is no such{}", option, text,
                suggestion(text, known));
}

std::vector<std::string_view> calledNames() {
  std::vector<std::string_view> names;
  for (const Collective one : kCalled) names.push_back(collectiveName(one));
  return names;
}

}  // namespace

Result<Options> readOptions(int argc, const char* const* argv, Lookup variable) {
  Options options;
  std::vector<std::string> operations{"all_reduce"};
  std::string from = "32M", to = "32M", dtype = "f32", op = "sum", place = "both", wait = "60s";
  std::int64_t factor = 2;
  int check = 1, gpu = 0;
  CLI::App app{
      "Calls NCCL's collectives and prints the table that nccl-tests prints: sizes, times, "
      "bandwidths, wrong elements. One process per rank; RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR "
      "and MASTER_PORT say which, as torchrun and 'faultline run' set them. Exit code 1: elements "
      "were wrong; 3: a call failed or was not done in time.",
      "nccl_bench"};
  app.add_option("--collective", operations, join(calledNames(), ", "))->delimiter(',');
  app.add_option("-b,--minbytes", from, "smallest size, like 8, 8K or 64M")->capture_default_str();
  app.add_option("-e,--maxbytes", to, "largest size; without it the smallest");
  app.add_option("-f,--stepfactor", factor, "from one size to the next")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("-n,--iters", options.calls, "calls of each size")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("-w,--warmup_iters", options.warmups, "calls before them")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("-c,--check", check, "1: every element is compared; 0: none")
      ->check(CLI::Range(0, 1))
      ->capture_default_str();
  app.add_option("-d,--datatype", dtype, join(reduction::kDataTypeNames, ", "))
      ->capture_default_str();
  app.add_option("-o,--op", op, join(reduction::kReduceOpNames, ", "))->capture_default_str();
  app.add_option("--place", place, "out, in or both")
      ->check(CLI::IsMember({"out", "in", "both"}))
      ->capture_default_str();
  app.add_flag("--each", options.each,
               "time, check and tell each call; the table has medians. Without it: the mean of "
               "calls in a row, and one more call that is checked");
  app.add_option("--gpu", gpu,
                 "which GPU, modulo those that there are; LOCAL_RANK by default. Nodes that are "
                 "namespaces of one machine take their rank")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--wait", wait, "a call that is not done after so long has failed")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Status(Code::kAborted, app.help());
  } catch (const CLI::Error& error) {
    return errorf(Code::kInvalidArgument, "{}", error.what());
  }

  const std::vector<std::string_view> names = calledNames();
  options.sweep.operations.clear();
  for (const std::string& name : operations) {
    std::optional<Collective> found = schedule::collectiveFromName(name);
    if (found && std::ranges::find(kCalled, *found) == kCalled.end()) found.reset();
    ASSIGN_OR_RETURN(const Collective one, named("--collective", name, found, names));
    options.sweep.operations.push_back(one);
  }
  ASSIGN_OR_RETURN(const Bytes least, readSize("-b", from));
  ASSIGN_OR_RETURN(const Bytes most,
                   app.count("-e") == 0 ? Result<Bytes>(least) : readSize("-e", to));
  if (most < least) {
    return errorf(Code::kInvalidArgument, "-e {} is less than -b {}", to, from);
  }
  options.sweep.sizes = scenario::sizesBetween(least, most, factor);
  ASSIGN_OR_RETURN(
      options.sweep.dtypes.front(),
      named("-d", dtype, reduction::dataTypeFromName(dtype), reduction::kDataTypeNames));
  ASSIGN_OR_RETURN(options.sweep.ops.front(),
                   named("-o", op, reduction::reduceOpFromName(op), reduction::kReduceOpNames));
  options.sweep.place = place == "out"  ? scenario::Place::kOut
                        : place == "in" ? scenario::Place::kIn
                                        : scenario::Place::kBoth;
  options.check = check == 1;
  ASSIGN_OR_RETURN(options.wait, parseDuration(wait));
  RETURN_IF_ERROR(readEnvironment(variable, options));
  if (app.count("--gpu") > 0) options.gpu = gpu;
  if (options.recovery != Recovery::kNone && !options.each) {
    return errorf(Code::kInvalidArgument,
                  "FAULTLINE_NCCL_RECOVERY needs --each: a call is made again, not a row of them");
  }
  if (options.recovery == Recovery::kShrink && options.interfaces.empty()) {
    return errorf(Code::kInvalidArgument,
                  "FAULTLINE_NCCL_RECOVERY=shrink: FAULTLINE_INTERFACES names no port by which a "
                  "rank could know that it is the one to leave");
  }
  const int exact =
      workload::maxExactRanks(options.sweep.dtypes.front(), options.sweep.ops.front());
  if (options.check && options.ranks > exact) {
    return errorf(Code::kInvalidArgument,
                  "{} of {} is exact for up to {} ranks: choose another -d or -o, or -c 0", op,
                  dtype, exact);
  }
  return options;
}

}  // namespace faultline::nccl_bench
