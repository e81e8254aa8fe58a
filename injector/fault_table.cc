#include "injector/fault_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace faultline::injector {
namespace {

constexpr std::array<std::string_view, 2> kHow{"carrier", "admin"};
constexpr std::array<std::string_view, 3> kDirections{"both", "tx", "rx"};

constexpr std::string_view kHowMeaning =
    "carrier: the switch's side goes down, as a pulled cable; the node's NIC loses its carrier and "
    "keeps addresses and routes. admin: the node's NIC is switched off, which also drops its "
    "routes";

constexpr double kMostFlaps = 1'000'000;
constexpr double kShortestPeriodSeconds = 0.002;
constexpr double kLongestPeriodSeconds = 3600;

constexpr std::array kPortDownParameters{
    ParameterSpec{"how", ParameterType::kEnum, "carrier", kHowMeaning, kHow},
};

constexpr std::array kPortFlapParameters{
    ParameterSpec{"how", ParameterType::kEnum, "carrier", kHowMeaning, kHow},
    ParameterSpec{"count",
                  ParameterType::kInteger,
                  "0",
                  "how many times the port goes down; 0: again and again while the fault lasts",
                  {},
                  0,
                  kMostFlaps},
    ParameterSpec{"period",
                  ParameterType::kDuration,
                  "500ms",
                  "from one loss of the port to the next",
                  {},
                  kShortestPeriodSeconds,
                  kLongestPeriodSeconds},
    ParameterSpec{"duty",
                  ParameterType::kPercent,
                  "50%",
                  "share of the period in which the port is down",
                  {},
                  1,
                  99},
};

constexpr std::array kThrottleParameters{
    ParameterSpec{"rate",
                  ParameterType::kRateOrPercent,
                  "",
                  "what is left: a rate, or a percentage of the rate the link has now",
                  {},
                  0.1,
                  100},
    ParameterSpec{"direction", ParameterType::kEnum, "both",
                  "tx: what the node sends; rx: what it receives", kDirections},
};

constexpr std::array kKinds{
    FaultKind{
        "port_down", "The port of one NIC goes down and stays down until the fault ends.",
        "the NIC's own node sees a port event at once; its peers, behind a switch, see nothing",
        "the other end of the cable has lost its carrier and its counters stand still",
        "the port is switched on again; addresses and routes that were lost are put back",
        kPortDownParameters},
    FaultKind{"port_flap", "The port of one NIC goes down and comes back, again and again.",
              "port events in a train; every return is soon followed by the next loss",
              "in each loss the other end of the cable has lost its carrier",
              "the port is switched on; addresses and routes that were lost are put back",
              kPortFlapParameters},
    FaultKind{"throttle", "One link becomes slow but stays up (a gray failure).",
              "nothing but time and counters",
              "bytes per second that leave the queue while there is a backlog; without load of the "
              "job, a probe stream of the injector's own",
              "the former rate is set again", kThrottleParameters},
    FaultKind{
        "blackhole",
        "One link swallows everything in both directions while its carrier stays up.",
        "silence: the NIC stays up, nothing is answered",
        "the NIC's transmit counter rises while what the switch forwards from and to that node "
        "stands still; without load of the job, probe frames of the injector's own",
        "the switch port forwards again",
        {}},
    FaultKind{"none",
              "Does nothing. For testing the bench: a run with it must be INVALID.",
              "nothing",
              "there is none, ever",
              "nothing to undo",
              {}},
};

Status outOfRange(const ParameterSpec& spec, std::string_view text, std::string_view unit) {
  return errorf(Code::kInvalidArgument, "{}: '{}' is out of range: {}{} to {}{} is possible",
                spec.name, text, spec.minimum, unit, spec.maximum, unit);
}

bool inRange(const ParameterSpec& spec, double value) {
  return value >= spec.minimum && value <= spec.maximum;
}

Result<ParameterValue> parsePercent(const ParameterSpec& spec, std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || std::string_view(end, last - end) != "%") {
    return errorf(Code::kInvalidArgument,
                  "{}: '{}' is not a percentage: write a number with its sign, like 50%", spec.name,
                  text);
  }
  if (!inRange(spec, number)) return outOfRange(spec, text, "%");
  return ParameterValue(Percent{number});
}

Result<ParameterValue> parseRateParameter(const ParameterSpec& spec, std::string_view text) {
  const Result<BitsPerSecond> rate = parseRate(text);
  if (!rate.ok()) return rate.status().withContext(spec.name);
  if (*rate < kSlowestRate) {
    return errorf(Code::kInvalidArgument, "{}: '{}' is too slow: {} is the slowest rate", spec.name,
                  text, formatRate(kSlowestRate));
  }
  return ParameterValue(Rate{*rate});
}

Result<ParameterValue> parseInteger(const ParameterSpec& spec, std::string_view text) {
  std::int64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last) {
    return errorf(Code::kInvalidArgument, "{}: '{}' is not a whole number", spec.name, text);
  }
  if (!inRange(spec, static_cast<double>(number))) return outOfRange(spec, text, "");
  return ParameterValue(number);
}

std::string join(std::span<const std::string_view> words, std::string_view separator) {
  std::string joined;
  for (const auto word : words) {
    if (!joined.empty()) joined += separator;
    joined += word;
  }
  return joined;
}

Result<ParameterValue> parseEnum(const ParameterSpec& spec, std::string_view text) {
  if (std::find(spec.choices.begin(), spec.choices.end(), text) == spec.choices.end()) {
    return errorf(Code::kInvalidArgument, "{}: '{}' is not one of {}", spec.name, text,
                  join(spec.choices, ", "));
  }
  return ParameterValue(std::string(text));
}

Result<ParameterValue> parseDurationParameter(const ParameterSpec& spec, std::string_view text) {
  const Result<Duration> duration = parseDuration(text);
  if (!duration.ok()) return duration.status().withContext(spec.name);
  if (!inRange(spec, toSeconds(*duration))) return outOfRange(spec, text, "s");
  return ParameterValue(*duration);
}

/// Breaks `text` at blanks so that lines fit, each after the first indented by `indent`.
std::string wrapped(std::string_view text, std::size_t indent) {
  constexpr std::size_t kColumns = 100;
  std::string lines;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    if (column > indent && column + 1 + word.size() > kColumns) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

std::string typeOf(const ParameterSpec& spec) {
  return spec.type == ParameterType::kEnum ? join(spec.choices, " | ")
                                           : std::string(typeName(spec.type));
}

}  // namespace

std::span<const FaultKind> faultKinds() { return kKinds; }

const FaultKind* findFaultKind(std::string_view name) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const FaultKind& kind) { return kind.name == name; });
  return found == kKinds.end() ? nullptr : &*found;
}

const ParameterSpec* findParameter(const FaultKind& kind, std::string_view name) {
  for (const ParameterSpec& spec : kind.parameters) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::string_view typeName(ParameterType type) {
  switch (type) {
    case ParameterType::kDuration:
      return "duration";
    case ParameterType::kPercent:
      return "percent";
    case ParameterType::kRate:
      return "rate";
    case ParameterType::kRateOrPercent:
      return "rate or percent";
    case ParameterType::kInteger:
      return "integer";
    case ParameterType::kEnum:
      return "enum";
  }
  return "unknown";
}

Result<ParameterValue> parseParameter(const ParameterSpec& spec, std::string_view text) {
  switch (spec.type) {
    case ParameterType::kDuration:
      return parseDurationParameter(spec, text);
    case ParameterType::kPercent:
      return parsePercent(spec, text);
    case ParameterType::kRate:
      return parseRateParameter(spec, text);
    case ParameterType::kRateOrPercent:
      return text.ends_with('%') ? parsePercent(spec, text) : parseRateParameter(spec, text);
    case ParameterType::kInteger:
      return parseInteger(spec, text);
    case ParameterType::kEnum:
      return parseEnum(spec, text);
  }
  return errorf(Code::kInternal, "{} has an unknown type", spec.name);
}

std::string formatParameter(const ParameterValue& value) {
  struct Visitor {
    std::string operator()(Duration duration) const { return formatDuration(duration); }
    std::string operator()(Percent percent) const { return fmt::format("{}%", percent.value); }
    std::string operator()(Rate rate) const { return formatRate(rate.bitsPerSecond); }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(const std::string& word) const { return word; }
  };
  return std::visit(Visitor{}, value);
}

Result<FaultParameters> FaultParameters::parse(const FaultKind& kind,
                                               const std::map<std::string, std::string>& texts) {
  FaultParameters parameters;
  for (const auto& [name, text] : texts) {
    if (findParameter(kind, name) != nullptr) continue;
    std::vector<std::string_view> known;
    for (const ParameterSpec& spec : kind.parameters) known.push_back(spec.name);
    return errorf(Code::kInvalidArgument, "{} has no parameter '{}'; it has {}", kind.name, name,
                  known.empty() ? "none" : join(known, ", "));
  }
  for (const ParameterSpec& spec : kind.parameters) {
    const auto given = texts.find(std::string(spec.name));
    if (given == texts.end() && spec.required()) {
      return errorf(Code::kInvalidArgument, "{} needs the parameter '{}' ({})", kind.name,
                    spec.name, spec.meaning);
    }
    Result<ParameterValue> value =
        parseParameter(spec, given == texts.end() ? spec.defaultText : given->second);
    if (!value.ok()) return value.status().withContext(kind.name);
    parameters.values_.emplace(spec.name, *std::move(value));
  }
  return parameters;
}

std::string describeFault(const FaultKind& kind) {
  constexpr std::size_t kLabelWidth = 12;
  const auto row = [](std::string_view label, std::string_view text) {
    return fmt::format("  {:<{}}{}\n", label, kLabelWidth - 2, wrapped(text, kLabelWidth));
  };
  std::string page = fmt::format("{}\n\n", kind.name) + row("does", kind.summary) +
                     row("job sees", kind.sees) + row("evidence", kind.evidence) +
                     row("undo", kind.undo) + "\nparameters\n";
  if (kind.parameters.empty()) page += "  none\n";
  for (const ParameterSpec& spec : kind.parameters) {
    const std::string default_text =
        spec.required() ? "required" : fmt::format("default {}", spec.defaultText);
    page +=
        row(spec.name, fmt::format("{}, {}", typeOf(spec), default_text)) + row("", spec.meaning);
  }
  return page + "\nevery fault also has target, at | during, and duration | until: end\n";
}

}  // namespace faultline::injector
