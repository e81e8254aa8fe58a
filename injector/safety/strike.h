#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "injector/safety/entry.h"
#include "injector/safety/journal.h"

/// How a strike begins and is undone, by whomever: its holder, its parent, or `faultline restore`.
/// Nothing here knows a kernel; what it does in which order is tried with a model, ended after each
/// single step.
namespace faultline::safety {

/// The machine that is struck. Targets are looked for anew each time: names and indexes change.
class Machine {
 public:
  virtual ~Machine() = default;

  /// Whether it can be done without replacing what is somebody else's. Changes nothing.
  virtual Status check(const Target& target, const Operation& operation) = 0;
  virtual Status apply(const Target& target, const Operation& operation) = 0;
  /// kNotFound when the target is gone, or another one has its name.
  virtual Result<bool> isInEffect(const Target& target, const Operation& operation) = 0;
  virtual Status undo(const Target& target, const Operation& operation) = 0;

  /// What is to be there again after the undo: that it works, and, when it `loses` them, its routes
  /// and addresses. What it does not lose, others may take away meanwhile.
  virtual Result<nlohmann::json> configuration(const Target& target, bool loses) = 0;
  /// Puts back what is missing of it, and waits until the target works again: kDeadlineExceeded,
  /// with what is missing, when it does not.
  virtual Status settle(const Target& target, const nlohmann::json& configuration) = 0;

  /// Runs a command of the policy. kUnavailable, with what it said, when it fails.
  virtual Status run(const std::vector<std::string>& command, Duration limit) = 0;
};

/// Checks that the operations of `entry` can be done, fills in its configuration, journals it,
/// announces it and does them, each looked at once more and journaled before it is begun. It ends
/// as much later as that took. When that fails nothing is left: kNotRestored where it is all the
/// same, with the entry in the journal; kAborted when, after the announcement, it was told to
/// `stop`.
Status begin(Machine& machine, Records& records, Entry& entry,
             const std::function<bool()>& stop = {});

/// Undoes it: each operation that was begun and is still in effect, last first; then what is
/// missing of the configuration; then the announcement. Then the entry is removed. May be ended
/// anywhere, and called again. kNotRestored when something is left, which the entry then says.
Status undo(Machine& machine, Records& records, Entry entry);

/// Whether something of it that was begun is in effect now; also where that cannot be seen.
bool lasts(Machine& machine, const Entry& entry);

/// What is to be done with an entry that somebody finds.
enum class Fate {
  kHeld,    ///< its holder lives: not to be touched
  kUndo,    ///< its holder has died
  kClosed,  ///< of another boot: nothing of it has survived that
};
Fate fateOf(const Entry& entry, const std::string& boot, bool holderLives);

/// Closes an entry of another boot: nothing is replayed, as no operation survives a reboot; what
/// was announced is taken back.
Status close(Machine& machine, Records& records, Entry entry);

}  // namespace faultline::safety
