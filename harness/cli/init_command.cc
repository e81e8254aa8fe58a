#include "harness/cli/init_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "harness/cli/cli.h"
#include "harness/cli/output.h"
#include "harness/cli/starter_scenario.h"
#include "harness/scenario/workload_kind.h"
#include "injector/fault_kind.h"
#include "injector/faults/registry.h"

namespace faultline::cli {
namespace {

constexpr const char* kInit = "init";
constexpr const char* kUsualFile = "my-scenario.yaml";
constexpr const char* kNoProgram = "which program? A line for the shell, like './train.sh'";

struct InitOptions {
  std::string workload;
  std::string program;
  std::vector<std::string> faults;
  std::vector<std::string> gates;
  int nodes = Starter{}.nodes;
  int rails = Starter{}.rails;
  std::string out;
  bool force = false;
  bool json = false;
};

/// Kinds of workloads that run ranks of ours.
std::string namesOfOurs() {
  std::vector<std::string_view> names;
  for (const scenario::WorkloadKind* const kind : scenario::workloadKinds()) {
    if (kind->runsRanks) names.push_back(kind->name);
  }
  return join(names, ", ");
}

/// The answer, or `usual` for an empty line; nullopt: nobody answers any more.
std::optional<std::string> ask(const std::string& question, const std::string& usual) {
  std::cerr << question << " [" << usual << "] " << std::flush;
  std::string answer;
  if (!std::getline(std::cin, answer)) return std::nullopt;
  return answer.empty() ? usual : answer;
}

/// Asks until an answer is right; `why_not` says what is wrong with one, "" for nothing. nullopt:
/// nobody answers any more.
template <typename WhyNot>
std::optional<std::string> askUntilRight(const std::string& question, const std::string& usual,
                                         const WhyNot& why_not) {
  while (true) {
    auto answer = ask(question, usual);
    if (!answer) return std::nullopt;
    const std::string why = why_not(*answer);
    if (why.empty()) return answer;
    std::cerr << "  " << printable(why) << '\n';
  }
}

std::string whyNoScenario(const Starter& starter) {
  const auto text = starterScenario(starter);
  return text.ok() ? "" : text.status().message();
}

bool isBlank(const std::string& text) { return text.find_first_not_of(" \t") == std::string::npos; }

std::vector<std::string> wordsOf(const std::string& text) {
  std::istringstream all(text);
  std::vector<std::string> words;
  for (std::string word; all >> word;) words.push_back(word);
  return words;
}

/// Which faults what runs can meet, and of the others why not.
std::string offeredFaults(const Starter& starter) {
  std::vector<std::string_view> possible;
  std::vector<std::pair<std::string, std::vector<std::string_view>>> others;  // by reason
  for (const injector::FaultKind& kind : injector::faultKinds()) {
    const std::string reason = reasonAgainst(starter, kind);
    if (reason.empty()) {
      possible.push_back(kind.name);
      continue;
    }
    const auto same =
        std::ranges::find(others, reason, [](const auto& other) { return other.first; });
    if (same != others.end()) {
      same->second.push_back(kind.name);
    } else {
      others.push_back({reason, {kind.name}});
    }
  }
  constexpr std::size_t kIndent = 2;
  std::string text = "  " + wrapText("Possible are " + join(possible, ", ") + ".", kIndent) + "\n";
  for (const auto& [reason, kinds] : others) {
    text +=
        "  " + wrapText(fmt::format("Not {}: each {}.", join(kinds, ", "), reason), kIndent) + "\n";
  }
  return text;
}

/// Fills in what options may say as well; false: the questions were not answered.
bool askAll(InitOptions& options) {
  Starter starter;
  const auto workload = askUntilRight(
      fmt::format("What runs? {}, or {}: a program of yours", namesOfOurs(), nameOfPrograms()),
      starter.workload, [&](const std::string& answer) {
        Starter other = starter;
        other.workload = answer;
        return whyNoScenario(other);
      });
  if (!workload) return false;
  options.workload = starter.workload = *workload;
  if (const auto* const kind = scenario::findWorkloadKind(options.workload);
      kind != nullptr && !kind->runsRanks) {
    const auto program = askUntilRight(
        "Which program? A line for the shell, run on every node", "sleep 5",
        [](const std::string& answer) { return std::string(isBlank(answer) ? kNoProgram : ""); });
    if (!program) return false;
    options.program = starter.program = *program;
  }
  std::cerr << offeredFaults(starter);
  const auto faults = askUntilRight(
      "Which faults? 'faultline describe' has each; blanks between",
      std::string(injector::kUsualFault), [&](const std::string& answer) {
        Starter other = starter;
        other.faults = wordsOf(answer);
        return other.faults.empty() ? std::string("name at least one") : whyNoScenario(other);
      });
  if (!faults) return false;
  options.faults = starter.faults = wordsOf(*faults);
  const std::string usual_gate = "what suits the rest";
  const auto gate = askUntilRight("What must hold? A line of 'expect'", usual_gate,
                                  [&](const std::string& answer) {
                                    Starter other = starter;
                                    if (answer != usual_gate) other.gates = {answer};
                                    return whyNoScenario(other);
                                  });
  if (!gate) return false;
  if (*gate != usual_gate) options.gates = {*gate};
  const auto out = askUntilRight("Into which file?", kUsualFile, [&](const std::string& answer) {
    std::error_code ignored;
    const bool there = std::filesystem::exists(answer, ignored);
    return there ? answer + " is there already: name another one" : std::string();
  });
  if (!out) return false;
  options.out = *out;
  return true;
}

Status writeNew(const std::string& path, const std::string& text, bool force) {
  // A link is no file that is there: what it leads to was not named.
  if (force) {
    return writeFileAtomically(path, text, Sync::kYes,
                               isStream(path) ? Links::kFollowed : Links::kRefused);
  }
  constexpr int kMode = 0666;
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
  if (!file && errno == EEXIST) {
    return errorf(Code::kAlreadyExists,
                  "{} is there already: choose another --out, or --force to replace it", path);
  }
  if (!file) return Status::fromErrno(errno, "create " + path);
  // Ours by now: replaced as a whole, so that no half of it is left by a full disk.
  const Status written = writeFileAtomically(path, text, Sync::kYes, Links::kRefused);
  if (!written.ok()) (void)::unlink(path.c_str());
  return written;
}

int init(InitOptions options, bool any_option, bool names_program) {
  if (names_program && isBlank(options.program)) {
    return fail(kInit, errorf(Code::kInvalidArgument, "--program: {}", kNoProgram), kExitUsage);
  }
  if (!any_option && ::isatty(STDIN_FILENO) == 1 && !askAll(options)) {
    std::cerr << '\n';
    return fail(kInit, errorf(Code::kAborted, "nothing was written: not all was answered"),
                kExitUsage);
  }
  Starter starter;
  if (!options.out.empty()) starter.name = nameFromFile(options.out);
  starter.workload = !options.workload.empty() ? options.workload
                     : options.program.empty() ? starter.workload
                                               : std::string(nameOfPrograms());
  starter.program = options.program;
  if (!options.faults.empty()) starter.faults = options.faults;
  starter.gates = options.gates;
  starter.nodes = options.nodes;
  starter.rails = options.rails;
  const auto text = starterScenario(starter);
  if (!text.ok()) return fail(kInit, text.status(), kExitUsage);
  if (!options.out.empty()) {
    const Status written = writeNew(options.out, *text, options.force);
    if (!written.ok()) {
      return fail(kInit, written,
                  written.code() == Code::kAlreadyExists ? kExitUsage : kExitCannotRun);
    }
  }
  if (options.json) {
    print({{"file", options.out.empty() ? Json() : Json(options.out)}, {"text", *text}});
  } else if (options.out.empty()) {
    std::cout << *text;
  } else {
    printPlain(options.out + "\n");
    std::cerr << "run it with: faultline run " << printable(options.out) << '\n';
  }
  return kExitOk;
}

}  // namespace

CLI::App* addInitCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand(kInit, "Write a commented scenario, from options or a few questions");
  const auto options = std::make_shared<InitOptions>();
  command
      ->add_option("--workload", options->workload,
                   "training (default), collective, inference, or command: a program of yours")
      ->type_name("KIND");
  command
      ->add_option("--program", options->program,
                   "A program of yours, as a line for the shell; means --workload command")
      ->type_name("'CMD'");
  command
      ->add_option("--fault", options->faults,
                   fmt::format("A kind of fault, see list faults; may be repeated (default: {})",
                               injector::kUsualFault))
      ->type_name("KIND")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--gate", options->gates,
                   "What must hold, like 'hot_repair.overhead_pct.median <= 30'; may be repeated "
                   "(default: what holds on a busy machine too)")
      ->type_name("'METRIC ...'")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--nodes", options->nodes, "Nodes")->capture_default_str();
  command->add_option("--rails", options->rails, "NICs of each")->capture_default_str();
  command
      ->add_option("--out", options->out,
                   "The file to write (default: standard output); its name is the scenario's")
      ->type_name("FILE");
  command->add_flag("--force", options->force, "Replace a file that is there");
  addJsonFlag(*command, options->json);
  setFooter(*command, "Without any option on a terminal it asks.",
            {"faultline init",
             fmt::format("faultline init --fault {} --out slow-rail.yaml",
                         injector::firstFaultKind(&injector::FaultKind::slows).name),
             fmt::format("faultline init --program './train.sh' --fault {} --out mine.yaml",
                         injector::kUsualFault),
             "faultline init --workload collective | faultline run -"},
            "0 written, 2 usage mistake, or the file is there already, 3 it cannot be written");
  command->callback([options, command, &exit_code] {
    exit_code = init(*options, command->count_all() > 1,  // itself, and its options
                     command->count("--program") > 0);
  });
  return command;
}

}  // namespace faultline::cli
