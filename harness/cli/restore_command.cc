#include "harness/cli/restore_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "harness/cli/cli.h"
#include "harness/cli/output.h"
#include "harness/faultd/question.h"
#include "harness/strike/left_strikes.h"
#include "harness/strike/plan.h"
#include "injector/netlink/namespace.h"
#include "injector/safety/policy_file.h"

namespace faultline::cli {
namespace {

constexpr std::string_view kRestore = "restore";
constexpr std::string_view kStatus = "status";
constexpr Duration kLockPatienceOfRestore = 60s;

struct RestoreOptions {
  std::string journal{safety::kJournalPath};
  std::string policy{safety::kPolicyPath};
  std::string socket{wire::kServiceSocket};
  std::string job;  ///< only what this one of Slurm has left
  bool force = false;
  bool json = false;
};

/// For the service to answer; it is on this machine.
constexpr Duration kServicePatience = 3s;

Json toJson(const safety::Entry& entry) {
  Json operations = Json::array();
  for (const safety::Operation& operation : entry.operations) {
    operations.push_back({{"do", safety::commandOf(operation, entry.target.interface)},
                          {"undo", safety::inverseOf(operation, entry.target.interface)}});
  }
  return {{"id", entry.id},
          {"kind", entry.kind},
          {"interface", entry.target.interface},
          {"pci", entry.target.pci},
          {"mac", entry.target.mac},
          {"holder", entry.holder.pid},
          {"user", entry.user},
          {"job", entry.job},
          {"began_at", entry.beganAt},
          {"ends_at", entry.endsAt},
          {"operations", std::move(operations)},
          {"left", entry.left.empty() ? Json() : Json(entry.left)}};
}

Json toJson(const std::vector<safety::Kept::Strange>& strange) {
  Json files = Json::array();
  for (const auto& file : strange) files.push_back({{"path", file.path}, {"why", file.why}});
  return files;
}

Json toJson(const Result<wire::ServiceFacts>& service) {
  if (!service.ok()) return {{"serves", false}, {"why_not", service.status().message()}};
  return {{"serves", true},
          {"program", service->program},
          {"why_not", service->whyNot.empty() ? Json() : Json(service->whyNot)}};
}

std::string inWords(const Result<wire::ServiceFacts>& service) {
  if (service.ok()) {
    return fmt::format(
        "faultline {} serves{}", service->program,
        service->whyNot.empty() ? std::string() : ", and strikes nothing here: " + service->whyNot);
  }
  return fmt::format(
      "none: what is left when its processes are dead stays until 'faultline restore' ({})",
      service.status().message());
}

int printRestored(const std::vector<strike::Became>& became, const safety::Kept& kept, bool json) {
  bool left = false;
  for (const strike::Became& one : became) left = left || one.word == "left";
  for (const auto& file : kept.strange) left = left || file.damaged;
  if (json) {
    Json rows = Json::array();
    for (const strike::Became& one : became) {
      Json row = toJson(one.entry);
      row["became"] = one.word;
      row["note"] = one.note;
      rows.push_back(std::move(row));
    }
    print({{"restored", !left}, {"strikes", std::move(rows)}, {"strange", toJson(kept.strange)}});
  } else {
    std::string text;
    for (const strike::Became& one : became) {
      text += fmt::format("{}: {}: {}\n", one.word, safety::inWords(one.entry), one.note);
    }
    for (const auto& file : kept.strange) {
      text += fmt::format("left alone: {}: {}\n", file.path, file.why);
    }
    if (became.empty() && !left) text += "nothing is left\n";
    printPlain(text);
  }
  return left ? kExitNotRestored : kExitOk;
}

int restore(const RestoreOptions& options) {
  if (::access(options.journal.c_str(), F_OK) != 0 && errno == ENOENT) {
    return printRestored({}, {}, options.json);
  }
  if (const Status can = strike::requireNetAdmin(); !can.ok())
    return fail(kRestore, can, kExitCannotRun);
  auto journal = safety::Journal::open(options.journal);
  if (!journal.ok()) return fail(kRestore, journal.status(), kExitCannotRun);
  const auto here = netlink::currentNamespace();
  if (!here.ok()) return fail(kRestore, here.status(), kExitCannotRun);
  auto socket = netlink::Socket::open(here->get());
  if (!socket.ok()) return fail(kRestore, socket.status(), kExitCannotRun);
  const auto kept = journal->read();
  if (!kept.ok()) return fail(kRestore, kept.status(), kExitCannotRun);
  std::vector<strike::Became> became;
  for (const safety::Entry& entry : kept->entries) {
    if (!options.job.empty() && entry.job != "job " + options.job) continue;
    became.push_back(
        strike::restoreOne(*socket, *journal, entry, options.force, kLockPatienceOfRestore));
  }
  return printRestored(became, *kept, options.json);
}

int status(const RestoreOptions& options) {
  const auto kept = safety::Journal::look(options.journal).read();
  if (!kept.ok()) return fail(kStatus, kept.status(), kExitCannotRun);
  const auto kinds = strike::hostFaults();
  const auto policy = safety::readPolicy(options.policy, kinds);
  const std::string allows =
      policy.ok() ? safety::inWords(*policy)
      : policy.status().code() == Code::kNotFound
          ? fmt::format("there is no policy {}: nothing on this host may be struck", options.policy)
          : fmt::format("the policy is not valid, so nothing may be struck: {}",
                        policy.status().message());
  const auto service = faultd::askService(options.socket, {}, kServicePatience);
  if (options.json) {
    Json held = Json::array();
    Json left = Json::array();
    for (const safety::Entry& entry : kept->entries) {
      (safety::isHeld(entry) ? held : left).push_back(toJson(entry));
    }
    print({{"policy", allows},
           {"policy_ok", policy.ok()},
           {"service", toJson(service)},
           {"held", std::move(held)},
           {"left", std::move(left)},
           {"strange", toJson(kept->strange)}});
    return kExitOk;
  }
  std::string text = fmt::format("policy: {}\nservice: {}\n", allows, inWords(service));
  for (const safety::Entry& entry : kept->entries) {
    const bool held = safety::isHeld(entry);
    text += fmt::format("{}: {}{}{}\n", held ? "held" : "left", safety::inWords(entry),
                        entry.left.empty() ? "" : ": " + entry.left,
                        held ? "" : "; 'faultline restore' takes it back");
  }
  for (const auto& file : kept->strange) {
    text += fmt::format("strange: {}: {}\n", file.path, file.why);
  }
  if (kept->entries.empty()) text += "nothing is held, nothing is left\n";
  printPlain(text);
  return kExitOk;
}

void addJournalOption(CLI::App& command, RestoreOptions& options) {
  command
      .add_option("--journal", options.journal,
                  "Folder for the record of each strike, used to undo it")
      ->type_name("DIR")
      ->capture_default_str();
}

}  // namespace

CLI::App* addRestoreCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "restore", "Undo every strike on this host's interfaces whose process is gone");
  const auto options = std::make_shared<RestoreOptions>();
  addJournalOption(*command, *options);
  command->add_flag("--force", options->force, "End processes that still hold a strike first");
  command->add_option("--job", options->job, "Only what this job of Slurm has left: for its Epilog")
      ->type_name("ID");
  addJsonFlag(*command, options->json);
  setFooter(*command,
            "May be run at any time, and again. At boot it closes what was left before: nothing "
            "of a strike survives a boot, and nothing is replayed.",
            {"faultline restore", "faultline restore --force --json"},
            "0 nothing is left but what is held, 2 usage mistake, 3 this machine cannot do it, 4 "
            "something could not be restored");
  command->callback([options, &exit_code] { exit_code = restore(*options); });
  return command;
}

CLI::App* addStatusCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "status", "Show which strikes on this host's interfaces are held or left, and the policy");
  const auto options = std::make_shared<RestoreOptions>();
  addJournalOption(*command, *options);
  command->add_option("--policy", options->policy, "The file that allows strikes")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_option("--socket", options->socket, "Where the fault service listens")
      ->type_name("PATH")
      ->capture_default_str();
  addJsonFlag(*command, options->json);
  setFooter(*command, "", {"faultline status", "faultline status --json"},
            "0 ok, 2 usage mistake, 3 the journal cannot be read");
  command->callback([options, &exit_code] { exit_code = status(*options); });
  return command;
}

}  // namespace faultline::cli
