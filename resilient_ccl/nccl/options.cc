#include "resilient_ccl/nccl/options.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string_view>

#include "base/text.h"
#include "resilient_ccl/auth/key_agreement.h"

namespace faultline::nccl {
namespace {

constexpr std::string_view kPrefix = "FAULTLINE_";
constexpr std::array<std::string_view, 2> kStrategies{"balance", "hot_repair"};
constexpr std::string_view kNone = "none";
constexpr int kMostIoThreads = 16;
constexpr std::size_t kShortestKey = 16, kLongestKey = 1024;

constexpr std::array kSpecs{
    ParameterSpec{
        "NICS", ParameterType::kText, kNone,
        "Interfaces that are rails, in the order of their numbers, which must be the same "
        "on all nodes, with commas between them; none: those of NCCL_SOCKET_IFNAME that are up, "
        "else all that are up and have an IPv4 address, but lo and bridges of containers (docker, "
        "virbr, ...)."},
    ParameterSpec{"NET_STRATEGY", ParameterType::kEnum, "balance",
                  "balance: each rail takes what it can; hot_repair: each chunk has its rail, and "
                  "another one only while that is down.",
                  kStrategies},
    ParameterSpec{"MANAGEMENT", ParameterType::kText, kNone,
                  "Interface over which processes meet and hear of each other when rails fail; "
                  "none: the first of NCCL_SOCKET_IFNAME that is no rail, else the first other one "
                  "that is up, else rail 0."},
    ParameterSpec{
        "GIVE_UP",
        ParameterType::kDuration,
        "10s",
        "A job that loses its last rail to a peer, or all sign of it, ends within so long: "
        "2 s before that, or a fifth of it if that is less, NCCL gets ncclRemoteError, and "
        "has the rest to abort.",
        {},
        0.1,
        3600},
    ParameterSpec{"RAIL_GRACE",
                  ParameterType::kDuration,
                  "1s",
                  "How long the first connection to a peer waits for all rails before it begins "
                  "with those that are there; FAULTLINE_GIVE_UP, if that is shorter.",
                  {},
                  0.01,
                  60},
    ParameterSpec{"CHUNK",
                  ParameterType::kSize,
                  "64KiB",
                  "What goes over one rail at a time, and is sent again when it fails.",
                  {},
                  4096,
                  4 << 20},
    ParameterSpec{"SMALL",
                  ParameterType::kSize,
                  "16KiB",
                  "Messages of up to so many bytes are copied, and done for NCCL as soon as the "
                  "peer can take "
                  "them, much as with a socket.",
                  {},
                  1,
                  65536},
    ParameterSpec{"HOLD_OFF",
                  ParameterType::kDuration,
                  "50ms",
                  "A rail that failed is not used again before this, unless no other is left; ten "
                  "times longer with each failure within 10 s of its return, up to 10 s.",
                  {},
                  0.001,
                  60},
    ParameterSpec{
        "IO_THREADS",
        ParameterType::kInteger,
        "-1",
        "Threads of the process that move the bytes, each for some of the rails; 0: NCCL's "
        "own threads do, in its calls; -1: a quarter of the processors that the process "
        "may use, two for each rail and 16 at most, none below four processors.",
        {},
        Options::kAutomatic,
        kMostIoThreads},
    ParameterSpec{
        "KEY", ParameterType::kText, kNone,
        "Secret of the job, the same on all nodes, 16 to 1024 bytes (`openssl rand -hex "
        "32` makes one): who does not have it cannot take part, even who has read all that "
        "NCCL's bootstrap says. none: who has been given a handle by that may take part."},
    ParameterSpec{"COUNTERS", ParameterType::kText, kNone,
                  "File for the counters of this process, written when NCCL is done with the "
                  "plugin (JSON); %h is the host's name, %p the process; none: not written."},
    ParameterSpec{"TRACE", ParameterType::kText, kNone,
                  "File for a trace of this process in Chrome's format, for Perfetto: what "
                  "happened to rails, and bytes over each; named and written like the counters."},
};

/// What else of the project reads or sets variables with our prefix: `faultline run`'s commands and
/// the measuring program (harness/command/variables.cc, harness/nccl_bench), and tests.
constexpr std::array<std::string_view, 32> kOfOthers{
    "RANK",           "RANKS",       "LOCAL_RANK",  "LOCAL_RANKS",   "NODE",
    "NODES",          "GROUP_RANK",  "GROUPS",      "RAILS",         "ADDRESS",
    "ADDRESSES",      "INTERFACE",   "INTERFACES",  "OUTPUT",        "PROGRESS",
    "STRATEGY",       "BLOCK",       "SEED",        "SEEDS",         "REPETITIONS",
    "MASTER_ADDRESS", "MASTER_PORT", "RDMA_KERNEL", "NCCL_RECOVERY", "NCCL_RECOVERY_FILE",
    "NCCL_WAIT_MS",   "TEST_CHILD",  "TEST_INNER",  "VERBS_DIR",     "VERBS_LIB",
    "VERBS_SHIM",     "VERBS_VICTIM"};
/// Beginnings of names; '#' is a digit.
constexpr std::array<std::string_view, 2> kBeginningsOfOthers{"RAIL_#", "ADDRESS_#"};

bool isOfOthers(std::string_view name) {
  const auto begins = [&](std::string_view beginning) {
    return name.size() >= beginning.size() &&
           std::ranges::equal(name.substr(0, beginning.size()), beginning, [](char c, char known) {
             return known == '#' ? c >= '0' && c <= '9' : c == known;
           });
  };
  return std::ranges::find(kOfOthers, name) != kOfOthers.end() ||
         std::ranges::any_of(kBeginningsOfOthers, begins);
}

std::string textOf(const Parameters& values, std::string_view name) {
  const auto& text = values.get<std::string>(name);
  return text == kNone ? "" : text;
}

/// The error names the variable and what it may be.
Result<ParameterValue> valueOf(ParameterSpec spec, const std::string& variable,
                               const std::string& text) {
  spec.name = variable;  // as users write it
  const Result<ParameterValue> value = parseParameter(spec, text);
  constexpr std::string_view kPossible = "is possible";
  const Status status = value.status();
  if (status.ok() || !spec.bounded() || status.message().ends_with(kPossible)) return value;
  return errorf(status.code(), "{}: {} to {} {}", status.message(), formatBound(spec, spec.minimum),
                formatBound(spec, spec.maximum), kPossible);
}

constexpr std::string_view kBlanks = " \t\r\n";

/// No interface has a blank in its name: they part names as commas do.
std::vector<std::string> split(std::string_view list) {
  const std::string separators = std::string(kBlanks) + ',';
  std::vector<std::string> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(separators), list.size());
    if (end > 0) words.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

/// "^=" stays before the list.
std::string withoutBlanks(std::string_view rules) {
  std::string prefix;
  while (!rules.empty() && (kBlanks.find(rules.front()) != std::string_view::npos ||
                            rules.front() == '^' || rules.front() == '=')) {
    if (rules.front() == '^' || rules.front() == '=') prefix += rules.front();
    rules.remove_prefix(1);
  }
  return prefix + fmt::format("{}", fmt::join(split(rules), ","));
}

}  // namespace

std::span<const ParameterSpec> optionSpecs() { return kSpecs; }

Result<Options> Options::read(const Environment& environment) {
  Parameters values;
  for (const ParameterSpec& spec : kSpecs) {
    const std::string variable = std::string(kPrefix) + std::string(spec.name);
    const auto text = environment(variable);
    ASSIGN_OR_RETURN(
        const ParameterValue value,
        valueOf(spec, variable, text && !text->empty() ? *text : std::string(spec.defaultText)));
    values.set(std::string(spec.name), value);
  }
  Options options;
  const std::string nics = textOf(values, "NICS");
  options.nics = split(nics);
  if (!nics.empty() && options.nics.empty()) {
    return errorf(Code::kInvalidArgument,
                  "FAULTLINE_NICS: \"{}\" names no interface; interfaces with commas between them "
                  "are expected, or {}",
                  nics, kNone);
  }
  options.management = fmt::format("{}", fmt::join(split(textOf(values, "MANAGEMENT")), " "));
  options.policy = values.get<std::string>("NET_STRATEGY") == kStrategies[0]
                       ? channel::Policy::kPull
                       : channel::Policy::kPinned;
  options.chunkBytes = values.get<Size>("CHUNK").bytes;
  options.smallMessage = values.get<Size>("SMALL").bytes;
  options.holdOff = values.get<Duration>("HOLD_OFF");
  options.giveUp = values.get<Duration>("GIVE_UP");
  options.railGrace = values.get<Duration>("RAIL_GRACE");
  options.ioThreads = static_cast<int>(values.get<std::int64_t>("IO_THREADS"));
  if (const std::string key = textOf(values, "KEY"); !key.empty()) {
    if (key.size() < kShortestKey || key.size() > kLongestKey) {
      return errorf(Code::kInvalidArgument,
                    "FAULTLINE_KEY has {} bytes: {} to {} are possible, and `openssl rand -hex 32` "
                    "makes a good one",
                    key.size(), kShortestKey, kLongestKey);
    }
    constexpr std::string_view kPurpose = "FAULTLINE_KEY";
    options.jobKey =
        auth::deriveKey({}, std::as_bytes(std::span(key)), {std::as_bytes(std::span(kPurpose))});
  }
  options.counters = textOf(values, "COUNTERS");
  options.trace = textOf(values, "TRACE");
  const std::string rules = environment("NCCL_SOCKET_IFNAME").value_or("");
  if (rules.size() > 1) options.socketInterfaces = withoutBlanks(rules);
  return options;
}

Result<Options> Options::readProcess() { return read(processEnvironment); }

std::optional<std::string> processEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::vector<std::string> likelyMistakes(std::span<const std::string> variables) {
  std::vector<std::string_view> known;
  for (const ParameterSpec& spec : kSpecs) known.push_back(spec.name);
  std::vector<std::string> mistakes, unknown;
  for (const std::string& variable : variables) {
    if (!variable.starts_with(kPrefix)) continue;
    const std::string_view name = std::string_view(variable).substr(kPrefix.size());
    if (std::ranges::find(known, name) != known.end() || isOfOthers(name)) continue;
    const std::string_view meant = closestWord(name, known);
    if (meant.empty()) {
      unknown.push_back(variable);
      continue;
    }
    mistakes.push_back(fmt::format("{} is no option of the plugin (did you mean {}{}?)", variable,
                                   kPrefix, meant));
  }
  if (!unknown.empty()) {
    mistakes.push_back(fmt::format(
        "without effect, since the plugin has no such options: {}; it "
        "has {}{}",
        fmt::join(unknown, ", "), kPrefix, fmt::join(known, fmt::format(", {}", kPrefix))));
  }
  return mistakes;
}

std::vector<std::string> environmentNames() {
  std::vector<std::string> names;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view entry = *one;
    names.emplace_back(entry.substr(0, entry.find('=')));
  }
  return names;
}

int automaticIoThreads(int processors, int rails) {
  return std::min({processors / 4, 2 * rails, kMostIoThreads});
}

std::string Options::describe() const {
  const auto orNone = [](const std::string& text) {
    return text.empty() ? std::string(kNone) : text;
  };
  return fmt::format(
      "FAULTLINE_NICS={} FAULTLINE_NET_STRATEGY={} FAULTLINE_MANAGEMENT={} FAULTLINE_GIVE_UP={} "
      "FAULTLINE_RAIL_GRACE={} FAULTLINE_CHUNK={} FAULTLINE_SMALL={} FAULTLINE_HOLD_OFF={} "
      "FAULTLINE_IO_THREADS={} FAULTLINE_KEY={} FAULTLINE_COUNTERS={} FAULTLINE_TRACE={}",
      nics.empty() ? std::string(kNone) : fmt::format("{}", fmt::join(nics, ",")),
      kStrategies[policy == channel::Policy::kPull ? 0 : 1], orNone(management),
      formatDuration(giveUp), formatDuration(railGrace), formatSize(chunkBytes),
      formatSize(smallMessage), formatDuration(holdOff), ioThreads, jobKey ? "set" : kNone,
      orNone(counters), orNone(trace));
}

}  // namespace faultline::nccl
