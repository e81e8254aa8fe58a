#include "harness/scenario/document.h"

#include "harness/scenario/reader.h"

namespace faultline::scenario {
namespace {

constexpr yaml::Wanted kScenario{"scenario", "'faultline describe scenario'", kMaximumFileBytes};

}  // namespace

std::optional<Problem> checkText(std::string_view text, int source) {
  return yaml::checkText(text, source, kScenario);
}

Document parseDocument(std::string_view text, int source) {
  return yaml::parseDocument(text, source, kScenario);
}

}  // namespace faultline::scenario
