#include "harness/inference/requests.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "base/distributions.h"

namespace faultline::inference {
namespace {

/// Arrivals, prompts and outputs are drawn from generators of their own.
enum class Draw : std::uint64_t { kArrival = 1, kPrompt, kOutput };

Random generator(std::uint64_t seed, Draw what) {
  return Random(Random::mix(seed + static_cast<std::uint64_t>(what)));
}

template <typename Number>
bool readNumber(std::string_view& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool skipComma(std::string_view& text) {
  if (text.empty() || text.front() != ',') return false;
  text.remove_prefix(1);
  return true;
}

bool parseLine(std::string_view text, Request& request) {
  return readNumber(text, request.arrival) && skipComma(text) && readNumber(text, request.prompt) &&
         skipComma(text) && readNumber(text, request.output) && text.empty();
}

}  // namespace

int Lengths::longest() const {
  switch (spread) {
    case Spread::kFixed:
      break;
    case Spread::kUniform:
      return static_cast<int>(std::lround(mean * (1 + cv)));
    case Spread::kLognormal:
      return mean * kLongestInMeans;
  }
  return mean;
}

int Lengths::draw(Random& random) const {
  double length = mean;
  if (spread == Spread::kUniform) length = mean * (1 + cv * (2 * random.unit() - 1));
  if (spread == Spread::kLognormal) {
    // Of a lognormal variable: cv^2 = exp(sigma^2) - 1, mean = exp(mu + sigma^2 / 2).
    const double variance = std::log1p(cv * cv);
    length = mean * std::exp(std::sqrt(variance) * normal(random) - variance / 2);
  }
  return std::clamp(static_cast<int>(std::lround(length)), 1, longest());
}

Arrivals poissonArrivals(double qps, int count, const Lengths& prompt, const Lengths& output,
                         int firstId, std::uint64_t seed) {
  Random arrivals = generator(seed, Draw::kArrival);
  Random prompts = generator(seed, Draw::kPrompt);
  Random outputs = generator(seed, Draw::kOutput);
  Arrivals made{.qps = qps, .requests = {}};
  double when = 0;
  for (int i = 0; i < count; ++i) {
    when += exponential(arrivals) / qps;
    made.requests.push_back({.id = firstId + i,
                             .arrival = when,
                             .prompt = prompt.draw(prompts),
                             .output = output.draw(outputs)});
  }
  return made;
}

Result<Arrivals> parseTrace(std::string_view text) {
  Arrivals trace;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    Request request;
    if (!parseLine(line, request)) {
      const bool titles = trace.requests.empty() && line.find_first_of("0123456789") != 0;
      if (titles && number == 1) continue;
      return errorf(Code::kInvalidArgument,
                    "line {} is not 'arrival in seconds,prompt tokens,output tokens'", number);
    }
    const double before = trace.requests.empty() ? 0 : trace.requests.back().arrival;
    if (!(request.arrival >= before) || !std::isfinite(request.arrival)) {
      return errorf(Code::kInvalidArgument, "line {} arrives before the line above it, or before 0",
                    number);
    }
    if (request.prompt < 1 || request.output < 1) {
      return errorf(Code::kInvalidArgument, "line {} has a prompt or an output of no token",
                    number);
    }
    request.id = static_cast<int>(trace.requests.size());
    trace.requests.push_back(request);
  }
  if (trace.requests.empty()) return errorf(Code::kInvalidArgument, "there is no request in it");
  const double span = trace.requests.back().arrival - trace.requests.front().arrival;
  if (span > 0) trace.qps = static_cast<double>(trace.requests.size() - 1) / span;
  return trace;
}

}  // namespace faultline::inference
