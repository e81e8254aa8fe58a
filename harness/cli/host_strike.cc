#include "harness/cli/host_strike.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/capability.h>
#include <poll.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/file_text.h"
#include "base/printable.h"
#include "injector/faults/command_holder.h"
#include "injector/faults/registry.h"
#include "injector/netlink/namespace.h"
#include "injector/safety/policy_file.h"
#include "injector/safety/strike.h"

namespace faultline::cli {
namespace {

constexpr int kStrikeStepMs = 1;

/// Gives the journal back as soon as others see the entry.
class OnceLocked final : public safety::Records {
 public:
  OnceLocked(safety::Journal& journal, UniqueFd lock) : journal_(journal), lock_(std::move(lock)) {}
  Status create(const safety::Entry& entry) override {
    const Status created = journal_.create(entry);
    lock_.reset();
    return created;
  }
  Status write(const safety::Entry& entry) override { return journal_.write(entry); }
  Status remove(const std::string& id) override { return journal_.remove(id); }

 private:
  safety::Journal& journal_;
  UniqueFd lock_;
};

std::vector<std::string> environmentOf(const safety::Entry& entry) {
  return {"FAULTLINE_KIND=" + entry.kind, "FAULTLINE_INTERFACE=" + entry.target.interface,
          "FAULTLINE_STRIKE=" + entry.id};
}

/// Until the end, or an interruption; a while longer where what was seen by then proves nothing.
void hold(safety::HostWatch& watch, TimePoint end, run::Interrupt& interrupt,
          StrikeOutcome& outcome) {
  bool demanded = false;
  while (!outcome.interrupted && outcome.status.ok()) {
    const bool over = now() >= end;
    if (over && (watch.conclusive() || now() >= end + watch.evidenceBudget())) return;
    if (over && !demanded) outcome.status = watch.demandEvidence();
    demanded = over;
    pollfd signal{interrupt.fd(), POLLIN, 0};
    ::poll(&signal, 1, kStrikeStepMs);
    outcome.interrupted = interrupt.pending();
    if (outcome.status.ok()) outcome.status = watch.step(now());
  }
}

}  // namespace

std::vector<std::string_view> hostFaults() {
  std::vector<std::string_view> names;
  for (const injector::FaultKind& kind : injector::faultKinds()) {
    if (kind.makeOnHost != nullptr) names.push_back(kind.name);
  }
  return names;
}

safety::HostMachine::Run policyCommand(std::vector<std::string> environment) {
  return [environment = std::move(environment)](const std::vector<std::string>& command,
                                                Duration limit) -> Status {
    // Root runs it, perhaps long after the policy was read.
    RETURN_IF_ERROR(safety::trustedPath(command.front()).status());
    injector::HeldCommands held;
    held.words[static_cast<std::size_t>(injector::Step::kPrepare)] = command;
    held.environment = environment;
    held.limit = limit;
    ASSIGN_OR_RETURN(const auto holder, injector::CommandHolder::start(held));
    ASSIGN_OR_RETURN(const injector::CommandEnd end, holder->run(injector::Step::kPrepare));
    if (end.ok()) return okStatus();
    return errorf(Code::kUnavailable, "{}: {}{}{}", fmt::join(command, " "),
                  end.timed_out ? "it took too long and was killed"
                  : end.ran     ? fmt::format("exit code {}", end.code)
                                : std::string("it could not be started"),
                  end.errors.empty() ? "" : ": ", printable(end.errors));
  };
}

Status requireNetAdmin() {
  std::istringstream status(fileText("/proc/self/status"));
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t capabilities = 0;
    if (!(words >> key >> std::hex >> capabilities) || key != "CapEff:") continue;
    if ((capabilities >> CAP_NET_ADMIN & 1) != 0) return okStatus();
  }
  return errorf(Code::kPermissionDenied,
                "to change interfaces needs CAP_NET_ADMIN: run it with sudo, or --dry-run to see "
                "what it would do");
}

StrikeOutcome strike(netlink::Socket& socket, safety::Journal& journal, UniqueFd lock,
                     safety::Entry entry, safety::HostFault& fault, Duration length,
                     run::Interrupt& interrupt, safety::HostMachine::Allowed allowed) {
  StrikeOutcome outcome;
  safety::HostWatch& watch = *fault.watch;
  safety::HostMachine machine(socket, policyCommand(environmentOf(entry)));
  machine.alsoAwait([&](int ifindex) { return watch.whatIsMissing(socket, ifindex); });
  machine.alsoRequire(std::move(allowed));
  outcome.status = watch.prepare(socket, entry.target.ifindex);
  outcome.interrupted = interrupt.pending();
  if (outcome.interrupted || !outcome.status.ok()) return outcome;  // nothing was changed
  OnceLocked records(journal, std::move(lock));
  outcome.status = safety::begin(machine, records, entry, [&] { return interrupt.pending(); });
  outcome.interrupted = outcome.status.code() == Code::kAborted;
  if (outcome.interrupted) {
    outcome.status = okStatus();
    return outcome;
  }
  if (!outcome.status.ok()) return outcome;  // nothing is left, or the status says so
  const TimePoint begin = now();
  hold(watch, begin + length, interrupt, outcome);
  outcome.evidence = watch.verdict();
  outcome.evidence.fault = entry.kind;
  outcome.lasted = now() - begin;
  outcome.undone = safety::undo(machine, records, entry);
  return outcome;
}

bool hangs(const safety::Journal& journal, const std::string& id) {
  const auto kept = journal.read();
  if (!kept.ok()) return false;
  const auto entry = std::ranges::find(kept->entries, id, &safety::Entry::id);
  if (entry == kept->entries.end() || !safety::isOverdue(*entry, now())) return false;
  const auto here = netlink::currentNamespace();
  if (!here.ok()) return false;
  auto socket = netlink::Socket::open(here->get());
  if (!socket.ok()) return false;
  safety::HostMachine machine(*socket, {});
  return safety::lasts(machine, *entry);
}

Status undoLeft(netlink::Socket& socket, safety::Journal& journal, const safety::Entry& entry) {
  safety::HostMachine machine(socket, policyCommand(environmentOf(entry)));
  const safety::Fate fate = safety::fateOf(entry, safety::currentBoot(), safety::isHeld(entry));
  if (fate == safety::Fate::kClosed) return safety::close(machine, journal, entry);
  return safety::undo(machine, journal, entry);
}

}  // namespace faultline::cli
