#include "tests/fuzz/scenario/scenario_entry.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "harness/scenario/json.h"
#include "harness/scenario/reader.h"

namespace faultline::fuzz {
namespace {

[[noreturn]] void broken(const char* promise, const std::string& detail) {
  std::fprintf(stderr, "promise broken: %s\n%s\n", promise, detail.c_str());
  std::abort();
}

bool isUtf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
  return true;
}

}  // namespace

void scenarioReader(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kMostOverrides = 8;
  std::vector<std::string> overrides;
  const std::string mark = "#set ";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && overrides.size() < kMostOverrides;) {
    if (line.starts_with(mark)) overrides.push_back(line.substr(mark.size()));
  }
  const scenario::ReadResult result = scenario::readScenario(text, "fuzz", overrides);
  if (result.ok() != result.mistakes.empty()) broken("a scenario or mistakes", text);
  for (const scenario::Mistake& mistake : result.mistakes) {
    const std::string line = mistake.toString();
    if (line.find('\n') != std::string::npos) broken("messages are one line", line);
    if (mistake.message.empty() || mistake.line < 0 || mistake.column < 0) {
      broken("messages say something", line);
    }
    if (isUtf8(text) && !isUtf8(line)) broken("messages are UTF-8", line);
  }
  if (!result.ok()) return;
  const std::string json = scenario::toJson(*result.scenario).dump();
  const scenario::ReadResult again = scenario::readScenario(json, "json");
  if (!again.ok()) broken("JSON is read again", json + "\n" + again.mistakes[0].toString());
  if (!(*again.scenario == *result.scenario)) broken("JSON is the same scenario", json);
}

}  // namespace faultline::fuzz
