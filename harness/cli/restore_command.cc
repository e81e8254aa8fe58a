#include "harness/cli/restore_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "harness/cli/cli.h"
#include "harness/cli/host_strike.h"
#include "harness/cli/output.h"
#include "injector/netlink/namespace.h"
#include "injector/safety/policy_file.h"
#include "injector/safety/strike.h"

namespace faultline::cli {
namespace {

constexpr std::string_view kRestore = "restore";
constexpr std::string_view kStatus = "status";
/// Until a holder that was told to end has undone what it holds; its commands come on top.
constexpr Duration kHolderPatience = 20s;
constexpr Duration kLockPatienceOfRestore = 60s;
constexpr int kHolderLookMs = 10;

struct RestoreOptions {
  std::string journal{safety::kJournalPath};
  std::string policy{safety::kPolicyPath};
  bool force = false;
  bool json = false;
};

/// What became of one entry.
struct Became {
  safety::Entry entry;
  std::string_view word;  ///< "restored", "closed", "held", "left"
  std::string note;
};

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

/// Ends it in order, which undoes what it holds; if that takes too long, or it is stopped, at once.
void endHolder(const safety::Entry& entry) {
  for (const int number : {SIGTERM, SIGKILL}) {
    if (number == SIGTERM && safety::isStopped(entry.holder.pid)) continue;
    ::kill(entry.holder.pid, number);
    const TimePoint deadline = now() + kHolderPatience + entry.commandLimit;
    while (safety::isHeld(entry) && now() < deadline) ::poll(nullptr, 0, kHolderLookMs);
    if (!safety::isHeld(entry)) return;
  }
}

Became restoreOne(netlink::Socket& socket, safety::Journal& journal, const safety::Entry& entry,
                  bool force) {
  const auto held = [&] { return safety::isHeld(entry); };
  if (held() && !force && !safety::isOverdue(entry, now())) {
    return {entry, "held",
            fmt::format("process {} holds it, and takes it back itself; --force ends that first",
                        entry.holder.pid)};
  }
  if (held()) endHolder(entry);
  if (held()) {
    return {entry, "left", fmt::format("process {} cannot be ended", entry.holder.pid)};
  }
  // As it stands now: the holder may have begun or undone something since it was read.
  const auto kept = journal.read();
  if (!kept.ok()) return {entry, "left", kept.status().message()};
  const auto present = std::ranges::find(kept->entries, entry.id, &safety::Entry::id);
  if (present == kept->entries.end()) return {entry, "restored", "its holder has taken it back"};
  const bool other = safety::fateOf(entry, safety::currentBoot(), false) == safety::Fate::kClosed;
  const Status undone = undoLeft(socket, journal, *present);
  if (!undone.ok()) return {entry, "left", undone.message()};
  if (other) return {entry, "closed", "from an earlier boot; the reboot already undid it"};
  return {entry, "restored", "what it had changed was taken back"};
}

int printRestored(const std::vector<Became>& became, const safety::Kept& kept, bool json) {
  bool left = false;
  for (const Became& one : became) left = left || one.word == "left";
  for (const auto& file : kept.strange) left = left || file.damaged;
  if (json) {
    Json rows = Json::array();
    for (const Became& one : became) {
      Json row = toJson(one.entry);
      row["became"] = one.word;
      row["note"] = one.note;
      rows.push_back(std::move(row));
    }
    print({{"restored", !left}, {"strikes", std::move(rows)}, {"strange", toJson(kept.strange)}});
  } else {
    std::string text;
    for (const Became& one : became) {
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
  if (const Status can = requireNetAdmin(); !can.ok()) return fail(kRestore, can, kExitCannotRun);
  auto journal = safety::Journal::open(options.journal);
  if (!journal.ok()) return fail(kRestore, journal.status(), kExitCannotRun);
  const auto here = netlink::currentNamespace();
  if (!here.ok()) return fail(kRestore, here.status(), kExitCannotRun);
  auto socket = netlink::Socket::open(here->get());
  if (!socket.ok()) return fail(kRestore, socket.status(), kExitCannotRun);
  const auto lock = journal->lock(kLockPatienceOfRestore);
  if (!lock.ok()) return fail(kRestore, lock.status(), kExitCannotRun);
  const auto kept = journal->read();
  if (!kept.ok()) return fail(kRestore, kept.status(), kExitCannotRun);
  std::vector<Became> became;
  for (const safety::Entry& entry : kept->entries) {
    became.push_back(restoreOne(*socket, *journal, entry, options.force));
  }
  return printRestored(became, *kept, options.json);
}

int status(const RestoreOptions& options) {
  const auto kept = safety::Journal::look(options.journal).read();
  if (!kept.ok()) return fail(kStatus, kept.status(), kExitCannotRun);
  const auto kinds = hostFaults();
  const auto policy = safety::readPolicy(options.policy, kinds);
  const std::string allows =
      policy.ok() ? safety::inWords(*policy)
      : policy.status().code() == Code::kNotFound
          ? fmt::format("there is no policy {}: nothing on this host may be struck", options.policy)
          : fmt::format("the policy is not valid, so nothing may be struck: {}",
                        policy.status().message());
  if (options.json) {
    Json held = Json::array();
    Json left = Json::array();
    for (const safety::Entry& entry : kept->entries) {
      (safety::isHeld(entry) ? held : left).push_back(toJson(entry));
    }
    print({{"policy", allows},
           {"policy_ok", policy.ok()},
           {"held", std::move(held)},
           {"left", std::move(left)},
           {"strange", toJson(kept->strange)}});
    return kExitOk;
  }
  std::string text = fmt::format("policy: {}\n", allows);
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
  addJsonFlag(*command, options->json);
  setFooter(*command, "", {"faultline status", "faultline status --json"},
            "0 ok, 2 usage mistake, 3 the journal cannot be read");
  command->callback([options, &exit_code] { exit_code = status(*options); });
  return command;
}

}  // namespace faultline::cli
