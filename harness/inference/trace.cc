#include "harness/inference/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "harness/inference/trace_text.h"

namespace faultline::inference {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr double kMillisecondsPerSecond = 1e3;

/// How the time of a request is written.
enum class Clock { kSeconds, kDate };

/// A format of lines with commas.
struct Format {
  std::string_view name;
  Clock clock;
  /// Titles of time, prompt and output; those of one are separated by '|', the first is the usual.
  std::array<std::string_view, 3> needed;
  std::string_view others;  ///< titles of columns that are not used
  bool ours;
};

constexpr std::array kFormats{
    Format{"Faultline's format",
           Clock::kSeconds,
           {"arrival|arrival_s|arrival in seconds", "prompt|prompt_tokens|prompt tokens",
            "output|output_tokens|output tokens"},
           "",
           true},
    Format{"Azure's format",
           Clock::kDate,
           {"TIMESTAMP", "ContextTokens", "GeneratedTokens"},
           "",
           false},
    Format{"BurstGPT's format",
           Clock::kSeconds,
           {"Timestamp", "Request tokens", "Response tokens"},
           "Model|Total tokens|Log Type|Session ID|Elapsed time",
           false},
};
constexpr std::string_view kMooncake =
    "Mooncake's format (timestamp, input_length, output_length in JSON lines)";

std::string lowered(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  return small;
}

std::vector<std::string_view> parts(std::string_view text, char separator) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    found.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return found;
}

bool isTitle(std::string_view cell, std::string_view titles) {
  return std::ranges::any_of(
      parts(titles, '|'), [&](std::string_view title) { return lowered(title) == lowered(cell); });
}

std::string_view usual(std::string_view titles) { return titles.substr(0, titles.find('|')); }

std::string wordsOf(const Format& format) {
  return fmt::format("{} ({}, {}, {})", format.name, usual(format.needed[0]),
                     usual(format.needed[1]), usual(format.needed[2]));
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  return fmt::format("'{}{}'", text.substr(0, kLongest), text.size() > kLongest ? "..." : "");
}

/// A request as it stands in a file: the time by the file's own clock.
struct Logged {
  double time = 0;
  std::size_t timeColumn = 1;
  std::int64_t prompt = 0;
  std::int64_t output = 0;
};

class TraceReader {
 public:
  explicit TraceReader(std::size_t most) : most_(most) {}

  Result<RequestTrace> read(std::string_view text) {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      const std::string_view content = trimmed(line);
      if (content.empty() || content.front() == '#') continue;
      RETURN_IF_ERROR(readLine(line, content));
    }
    if (trace_.arrivals.requests.empty()) {
      return errorf(Code::kInvalidArgument, "there is no request in it{}",
                    trace_.leftOut > 0 ? " that has tokens of prompt and output" : "");
    }
    const std::vector<Request>& requests = trace_.arrivals.requests;
    const double span = requests.back().arrival - requests.front().arrival;
    if (span > 0) trace_.arrivals.qps = static_cast<double>(requests.size() - 1) / span;
    return std::move(trace_);
  }

 private:
  Status readLine(std::string_view line, std::string_view content) {
    if (trace_.format.empty() && content.front() == '{') trace_.format = kMooncake;
    if (trace_.format == kMooncake) return readJson(line);
    if (format_ == nullptr && isArrayOfObjects(content)) {
      return wrongAt(number_, 1, "a JSON array; expected are JSON lines: one {...} in each line");
    }
    ASSIGN_OR_RETURN(const std::vector<Cell> cells, cellsOf(line, number_));
    if (format_ != nullptr) return readCells(cells);
    ASSIGN_OR_RETURN(const bool titles, readTitles(cells));
    return titles ? okStatus() : readCells(cells);
  }

  /// Whether a JSON array begins in this line.
  static bool isArrayOfObjects(std::string_view content) {
    if (content.front() != '[') return false;
    const std::string_view rest = trimmed(content.substr(1));
    return rest.empty() || rest.front() == '{';
  }

  /// Says which format it is; whether the line has titles.
  Result<bool> readTitles(const std::vector<Cell>& cells) {
    std::size_t best = 0;
    for (const Format& format : kFormats) {
      std::size_t known = 0;
      for (const std::string_view titles : format.needed) {
        known += std::ranges::any_of(cells, [&](const Cell& c) { return isTitle(c.text, titles); });
      }
      if (known > best) {
        best = known;
        format_ = &format;
      }
    }
    const auto isNumber = [](const Cell& cell) {
      double value = 0;
      return isWhole(cell.text, value);
    };
    if (format_ == nullptr && cells.size() == columns_.size() && isNumber(cells.front())) {
      format_ = kFormats.data();
      trace_.format = wordsOf(*format_);
      return false;
    }
    if (format_ == nullptr) {
      std::string known;
      for (const Format& format : kFormats) known += wordsOf(format) + ", ";
      return errorf(Code::kInvalidArgument,
                    "line {} is neither a title nor a request: {}; known are {}and {}", number_,
                    shown(cells.front().text), known, kMooncake);
    }
    trace_.format = wordsOf(*format_);
    std::array<bool, 3> seen{};
    for (std::size_t i = 0; i < cells.size(); ++i) {
      RETURN_IF_ERROR(placeColumn(cells[i], i, seen));
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i]) continue;
      return errorf(Code::kInvalidArgument, "line {}: {} needs the column '{}'", number_,
                    format_->name, usual(format_->needed[i]));
    }
    width_ = cells.size();
    return true;
  }

  Status placeColumn(const Cell& cell, std::size_t index, std::array<bool, 3>& seen) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!isTitle(cell.text, format_->needed[i])) continue;
      if (seen[i]) {
        return wrongAt(number_, cell.column,
                       fmt::format("the column {} is there twice", shown(cell.text)));
      }
      seen[i] = true;
      columns_[i] = index;
      return okStatus();
    }
    if (isTitle(cell.text, format_->others)) return okStatus();
    std::vector<std::string_view> known = parts(format_->others, '|');
    for (const std::string_view titles : format_->needed) known.push_back(usual(titles));
    return wrongAt(number_, cell.column,
                   fmt::format("{} has no column {}{}", format_->name, shown(cell.text),
                               suggestion(cell.text, known)));
  }

  Status readCells(const std::vector<Cell>& cells) {
    if (cells.size() != width_) {
      return errorf(Code::kInvalidArgument, "line {} has {} columns, and {} needs {}: {}", number_,
                    cells.size(), format_->name, width_,
                    width_ == columns_.size() ? wordsOf(*format_) : "as many as titles");
    }
    const Cell& time = cells[columns_[0]];
    Logged logged{.timeColumn = time.column};
    if (format_->clock == Clock::kDate) {
      const std::optional<Date> date = dateOf(time.text);
      if (!date) {
        return wrongAt(
            number_, time.column,
            fmt::format("{} is no date like 2024-05-10 00:00:00.0099", shown(time.text)));
      }
      if (!firstDate_) firstDate_ = date->seconds;
      logged.time = static_cast<double>(date->seconds - *firstDate_) + date->fraction;
    } else if (!isWhole(time.text, logged.time) || !std::isfinite(logged.time)) {
      return wrongAt(number_, time.column, shown(time.text) + " is no time in seconds");
    }
    for (const auto& [index, value] : {std::pair(1, &logged.prompt), {2, &logged.output}}) {
      const Cell& cell = cells[columns_[static_cast<std::size_t>(index)]];
      if (!isWhole(cell.text, *value)) {
        return wrongAt(number_, cell.column,
                       fmt::format("{} is no number of tokens ({})", shown(cell.text),
                                   usual(format_->needed[static_cast<std::size_t>(index)])));
      }
    }
    return add(logged, format_->ours);
  }

  Status readJson(std::string_view line) {
    const auto parsed = parseJson(line);
    if (!parsed.ok()) return parsed.status().withContext(fmt::format("line {}", number_));
    if (!parsed->is_object()) {
      return errorf(Code::kInvalidArgument, "line {} is no JSON object", number_);
    }
    Logged logged;
    for (const auto& [key, value] : parsed->items()) {
      const bool needed = key == "timestamp" || key == "input_length" || key == "output_length";
      if (key == "hash_ids") continue;
      if (!needed) {
        constexpr std::array<std::string_view, 4> kKeys{"timestamp", "input_length",
                                                        "output_length", "hash_ids"};
        return errorf(Code::kInvalidArgument, "line {}: Mooncake's format has no key {}{}", number_,
                      shown(key), suggestion(key, kKeys));
      }
      const bool fits = key == "timestamp" ? value.is_number() : value.is_number_integer();
      if (!fits) {
        return errorf(Code::kInvalidArgument, "line {}: '{}' is no number", number_, key);
      }
      if (key == "timestamp") logged.time = value.get<double>() / kMillisecondsPerSecond;
      if (key == "input_length") logged.prompt = value.get<std::int64_t>();
      if (key == "output_length") logged.output = value.get<std::int64_t>();
    }
    for (const char* key : {"timestamp", "input_length", "output_length"}) {
      if (parsed->contains(key)) continue;
      return errorf(Code::kInvalidArgument, "line {}: the key '{}' is missing", number_, key);
    }
    return add(logged, /*ours=*/false);
  }

  Status add(const Logged& logged, bool ours) {
    if (!first_) first_ = ours ? 0 : logged.time;
    const double arrival = logged.time - *first_;
    if (arrival < latest_) {
      return wrongAt(number_, logged.timeColumn,
                     "it arrives before the line above it, or before 0; sort the file by time");
    }
    constexpr std::int64_t kMostTokens = std::numeric_limits<int>::max();
    if (logged.prompt < 0 || logged.output < 0 || logged.prompt > kMostTokens ||
        logged.output > kMostTokens) {
      return errorf(Code::kInvalidArgument, "line {}: {} and {} are no numbers of tokens", number_,
                    logged.prompt, logged.output);
    }
    latest_ = arrival;
    if (logged.prompt == 0 || logged.output == 0) {
      if (ours) {
        return errorf(Code::kInvalidArgument,
                      "line {} has a prompt or an output of no token; remove it", number_);
      }
      ++trace_.leftOut;
      return okStatus();
    }
    std::vector<Request>& requests = trace_.arrivals.requests;
    if (requests.size() == most_) {
      return errorf(Code::kInvalidArgument,
                    "it has more than {0} requests; cut it, as with 'head -n {0}'", most_);
    }
    requests.push_back({.id = static_cast<int>(requests.size()),
                        .arrival = arrival,
                        .prompt = static_cast<int>(logged.prompt),
                        .output = static_cast<int>(logged.output)});
    return okStatus();
  }

  std::size_t most_;
  int number_ = 0;
  const Format* format_ = nullptr;               ///< of lines with commas, once it is known
  std::array<std::size_t, 3> columns_{0, 1, 2};  ///< of time, prompt and output
  std::size_t width_ = 3;
  std::optional<std::int64_t> firstDate_;  ///< from which dates are counted
  std::optional<double> first_;            ///< the time that is 0
  double latest_ = 0;
  RequestTrace trace_;
};

}  // namespace

std::string RequestTrace::inWords() const {
  const std::size_t count = arrivals.requests.size();
  std::string words = fmt::format("{} request{} in {}", count, count == 1 ? "" : "s", format);
  if (leftOut > 0) {
    words += fmt::format("; {} without tokens of prompt or output {} left out", leftOut,
                         leftOut == 1 ? "is" : "are");
  }
  return words;
}

Result<RequestTrace> parseTrace(std::string_view text, std::size_t most) {
  return TraceReader(most).read(text);
}

}  // namespace faultline::inference
