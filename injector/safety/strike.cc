#include "injector/safety/strike.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "base/clock.h"

namespace faultline::safety {
namespace {

Status take(Machine& machine, Records& records, Entry& entry, const std::function<bool()>& stop) {
  const TimePoint announcing = now();
  if (!entry.before.empty()) {
    RETURN_IF_ERROR(machine.run(entry.before, entry.commandLimit)
                        .withContext("what is to run before (policy), so nothing was struck"));
  }
  if (stop && stop()) return errorf(Code::kAborted, "interrupted before anything was struck");
  const Duration announced = now() - announcing;
  entry.endsMonotonic += announced;
  entry.endsAt += std::chrono::ceil<std::chrono::seconds>(announced).count();
  for (const Operation& operation : entry.operations) {
    // The announcement may have taken long.
    RETURN_IF_ERROR(machine.check(entry.target, operation));
    ++*entry.begun;
    RETURN_IF_ERROR(records.write(entry));
    RETURN_IF_ERROR(machine.apply(entry.target, operation));
  }
  return okStatus();
}

/// What of it may have been done, and is ours to undo.
std::vector<Operation> begunOf(const Entry& entry) {
  const auto all = static_cast<std::ptrdiff_t>(entry.operations.size());
  const auto begun = entry.begun ? std::clamp<std::ptrdiff_t>(*entry.begun, 0, all) : all;
  return {entry.operations.begin(), entry.operations.begin() + begun};
}

Status takeBack(Machine& machine, const Entry& entry) {
  Status first;
  const auto note = [&](const Status& status) {
    if (first.ok()) first = status;
  };
  const std::vector<Operation> begun = begunOf(entry);
  if (begun.empty()) return okStatus();  // what is broken is not ours
  // One that fails must not cost the others.
  for (auto one = begun.rbegin(); one != begun.rend(); ++one) {
    const auto there = machine.isInEffect(entry.target, *one);
    note(there.status());
    if (there.ok() && *there) note(machine.undo(entry.target, *one));
  }
  RETURN_IF_ERROR(first);
  return machine.settle(entry.target, entry.configuration);
}

Status takeBackAnnouncement(Machine& machine, const Entry& entry) {
  if (entry.after.empty()) return okStatus();
  return machine.run(entry.after, entry.commandLimit).withContext("what is to run after (policy)");
}

Status finish(Records& records, Entry entry, const Status& done) {
  if (done.ok()) return records.remove(entry.id);
  entry.left = done.message();
  const Status noted = records.write(entry);
  return errorf(Code::kNotRestored, "{}{}", done.message(),
                noted.ok() ? "" : "; and the journal: " + noted.message());
}

}  // namespace

Status begin(Machine& machine, Records& records, Entry& entry, const std::function<bool()>& stop) {
  for (const Operation& operation : entry.operations) {
    RETURN_IF_ERROR(machine.check(entry.target, operation));
  }
  const bool loses = std::ranges::any_of(entry.operations, losesConfiguration);
  ASSIGN_OR_RETURN(entry.configuration, machine.configuration(entry.target, loses));
  entry.begun = 0;
  RETURN_IF_ERROR(records.create(entry));
  const Status taken = take(machine, records, entry, stop);
  if (taken.ok()) return taken;
  const Status undone = undo(machine, records, entry);
  if (undone.ok()) return taken;
  return errorf(Code::kNotRestored, "{}; and it could not be taken back: {}", taken.message(),
                undone.message());
}

Status undo(Machine& machine, Records& records, Entry entry) {
  Status done = takeBack(machine, entry);
  // While something is broken the maintenance goes on.
  if (done.ok()) done = takeBackAnnouncement(machine, entry);
  return finish(records, std::move(entry), done);
}

bool lasts(Machine& machine, const Entry& entry) {
  return std::ranges::any_of(begunOf(entry), [&](const Operation& operation) {
    const auto there = machine.isInEffect(entry.target, operation);
    return !there.ok() || *there;
  });
}

Fate fateOf(const Entry& entry, const std::string& boot, bool holderLives) {
  if (entry.bootId != boot) return Fate::kClosed;
  return holderLives ? Fate::kHeld : Fate::kUndo;
}

Status close(Machine& machine, Records& records, Entry entry) {
  const Status done = takeBackAnnouncement(machine, entry);
  return finish(records, std::move(entry), done);
}

}  // namespace faultline::safety
