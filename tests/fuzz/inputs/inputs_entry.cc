#include "tests/fuzz/inputs/inputs_entry.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/json.h"
#include "base/printable.h"
#include "harness/command/pattern.h"
#include "harness/inference/trace.h"

namespace faultline::fuzz {
namespace {

[[noreturn]] void broken(const char* promise, const std::string& detail) {
  std::fprintf(stderr, "promise broken: %s\n%s\n", promise, detail.c_str());
  std::abort();
}

void readTrace(const std::string& text) {
  constexpr std::size_t kMost = 50;
  const auto trace = inference::parseTrace(text, kMost);
  if (!trace.ok()) {
    if (trace.status().message().empty()) broken("an error says something", text);
    return;
  }
  double before = 0;
  if (trace->arrivals.requests.empty() || trace->arrivals.requests.size() > kMost) {
    broken("there are requests, and not too many", text);
  }
  for (const inference::Request& request : trace->arrivals.requests) {
    if (!(request.arrival >= before) || request.prompt < 1 || request.output < 1) {
      broken("requests have tokens and are in order", text);
    }
    before = request.arrival;
  }
}

void readPatterns(const std::string& text) {
  const std::string pattern = text.substr(0, text.find('\n'));
  if (!command::readPattern(pattern).ok()) return;
  const auto linear = command::makeRe2Engine();
  if (linear == nullptr) return;
  const bool compiled = linear->check(pattern).ok();
  const auto numbers = linear->numbersIn(text, pattern);
  if (!compiled && numbers.ok()) broken("what is no pattern matches nothing", text);
  if (!numbers.ok() && numbers.status().message().empty()) broken("an error says something", text);
}

void print(const std::string& text) {
  const std::string shown = printable(text);
  for (std::string_view rest = shown; !rest.empty();) {
    const std::size_t length = utf8Length(rest);
    if (length == 0 || isCommand(rest, length)) broken("what is printable is text", text);
    rest.remove_prefix(length);
  }
}

}  // namespace

void inputReaders(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  readTrace(text);
  readPatterns(text);
  print(text);
  const auto json = parseJson(text);
  if (json.ok() &&
      !parseJson(json->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)).ok()) {
    broken("what is written is read again", text);
  }
}

}  // namespace faultline::fuzz
