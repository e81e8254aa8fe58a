#include "harness/strike/left_strikes.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>

#include "harness/strike/policy_command.h"
#include "injector/netlink/namespace.h"
#include "injector/safety/host_machine.h"
#include "injector/safety/strike.h"

namespace faultline::strike {
namespace {

/// Until a holder that was told to end has undone what it holds; its commands come on top.
constexpr Duration kHolderPatience = 20s;
constexpr int kHolderLookMs = 10;

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

/// Whether its holder has not undone it in time. One that has may be with the command of the policy
/// that runs after it.
bool hangs(netlink::Socket& socket, const safety::Entry& entry) {
  const TimePoint moment = now();
  if (!safety::isOverdue(entry, moment)) return false;
  if (entry.after.empty() || safety::isOverdue(entry, moment - entry.commandLimit)) return true;
  safety::HostMachine machine(socket, {});
  return safety::isStopped(entry.holder.pid) || safety::lasts(machine, entry);
}

}  // namespace

bool stillLasts(const safety::Journal& journal,
                const std::function<bool(const safety::Entry&)>& which) {
  const auto kept = journal.read();
  if (!kept.ok()) return false;
  const auto entry = std::ranges::find_if(kept->entries, which);
  if (entry == kept->entries.end()) return false;
  const auto here = netlink::currentNamespace();
  if (!here.ok()) return false;
  auto socket = netlink::Socket::open(here->get());
  if (!socket.ok()) return false;
  safety::HostMachine machine(*socket, {});
  return safety::lasts(machine, *entry);
}

Status undoLeft(netlink::Socket& socket, safety::Journal& journal, const safety::Entry& entry) {
  safety::HostMachine machine(socket, policyCommand(entry));
  const safety::Fate fate = safety::fateOf(entry, safety::currentBoot(), safety::isHeld(entry));
  if (fate == safety::Fate::kClosed) return safety::close(machine, journal, entry);
  return safety::undo(machine, journal, entry);
}

Became restoreOne(netlink::Socket& socket, safety::Journal& journal, const safety::Entry& entry,
                  bool force, Duration patience) {
  const auto held = [&] { return safety::isHeld(entry); };
  if (held() && !force && !hangs(socket, entry)) {
    return {entry, "held",
            fmt::format("process {} holds it, and takes it back itself; --force ends that first",
                        entry.holder.pid)};
  }
  if (held()) endHolder(entry);
  if (held()) {
    return {entry, "left", fmt::format("process {} cannot be ended", entry.holder.pid)};
  }
  const auto lock = journal.lock(patience);
  if (!lock.ok()) return {entry, "left", lock.status().message()};
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

}  // namespace faultline::strike
