#include <fmt/format.h>

#include <algorithm>

#include "harness/site/hosts/greeting.h"
#include "harness/site/hosts/launcher.h"
#include "harness/site/hosts/launcher_list.h"
#include "harness/site/hosts/printed_text.h"

namespace faultline::hosts {
namespace {

/// A word of a shell.
std::string shellWord(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

constexpr std::string_view kHome = "~/";  // a home at its beginning is filled in by the shell there

}  // namespace

std::span<const Launcher* const> launchers() { return kLaunchers; }

const Launcher* findLauncher(std::string_view name) {
  const auto found = std::ranges::find_if(
      kLaunchers, [&](const Launcher* launcher) { return launcher->name == name; });
  return found == kLaunchers.end() ? nullptr : *found;
}

std::string reasonOf(const Launcher& launcher, std::string_view printed) {
  std::string said;
  for (std::string_view rest = printed; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const bool noise = std::ranges::any_of(launcher.noise, [line](std::string_view part) {
      return line.find(part) != std::string_view::npos;
    });
    if (noise || line.find_first_not_of("- \r") == std::string_view::npos) continue;
    said += (said.empty() ? "" : "\n") + std::string(line);
  }
  if (said.empty()) return "";
  const auto known = std::ranges::find_if(launcher.meanings, [&](const Meaning& meaning) {
    return said.find(meaning.printed) != std::string::npos;
  });
  return fmt::format("'{}'{}", excerpt(said),
                     known == launcher.meanings.end() ? "" : fmt::format(": {}", known->meaning));
}

std::vector<site::Refusal> checkProgramWords(std::string_view key, std::string_view options,
                                             const std::vector<std::string>& words) {
  // Often written so; a path may have spaces.
  if (words.size() != 1 || words.front().find(" -") == std::string::npos) return {};
  return {{std::string(key), fmt::format("{}: '{}' is one word: write a list, [{}, {}]", key,
                                         words.front(), key, options)}};
}

std::string agentLine(const std::string& program) {
  const bool home = program.starts_with(kHome);
  return fmt::format("exec {}{} agent --stdio", home ? kHome : "",
                     shellWord(program.substr(home ? kHome.size() : 0)));
}

std::vector<std::string> agentWords(const std::string& program) {
  if (program.starts_with(kHome)) return {"sh", "-c", agentLine(program)};
  return {program, "agent", "--stdio"};
}

site::MachineCheck programCheck(std::string_view program, std::string_view launcher,
                                std::string_view remedy) {
  const auto found = inPath(std::string(program));
  return {.group = "hosts",
          .name = std::string(program),
          .ok = found.ok(),
          .found = found.ok() ? *found : found.status().message(),
          .neededFor = fmt::format("clusters of kind hosts with 'launcher: {}'", launcher),
          .cost = "hosts are reached by other launchers only",
          .remedy = std::string(remedy)};
}

}  // namespace faultline::hosts
