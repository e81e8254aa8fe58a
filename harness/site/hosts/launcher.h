#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/site/hosts/hosts_spec.h"
#include "harness/site/kind.h"
#include "harness/site/machine_check.h"

namespace faultline::hosts {

/// What a launcher prints, and what it means.
struct Meaning {
  std::string_view printed;  ///< a part of it
  std::string_view meaning;  ///< with what to do
};

/// A way to start the agent of a host: a command here whose standard input and output are the
/// agent's, byte by byte and at once. It ends when the agent does. The end of its input reaches the
/// agent; so does its own death, sooner or later: the agent's lease is the bound.
struct Launcher {
  std::string_view name;     ///< as `launcher` has it
  std::string_view doc;      ///< continues "NAME: "
  std::string_view program;  ///< what runs here for each host; in messages
  bool thisMachine = false;  ///< this machine is every host
  Duration patience{};       ///< a host whose agent has not come after it does not come

  /// What of the keys is wrong for it. Pure. Null: nothing can be.
  std::vector<site::Refusal> (*check)(const HostsSpec& spec) = nullptr;
  /// Whether it can start anything from here. Null: it can.
  Status (*ready)(const HostsSpec& spec) = nullptr;
  /// The command for a host whose program is `program`. Pure.
  std::vector<std::string> (*command)(const HostsSpec& spec, const std::string& host,
                                      const std::string& program);
  /// Lines with one of these say nothing.
  std::span<const std::string_view> noise{};
  std::span<const Meaning> meanings{};
  /// Whether it is there, for `faultline doctor`. Null: nothing is needed.
  site::MachineCheck (*checkMachine)() = nullptr;
};

/// All of them; the first is the default.
std::span<const Launcher* const> launchers();
const Launcher* findLauncher(std::string_view name);  ///< null: there is none

/// What of the printed text says why, on one line, with what it means; "" when nothing is printed.
std::string reasonOf(const Launcher& launcher, std::string_view printed);

/// Of a key that says how a program is called: whether it is a list where it has to be. `options`
/// are an example.
std::vector<site::Refusal> checkProgramWords(std::string_view key, std::string_view options,
                                             const std::vector<std::string>& words);

/// How the agent is started where no shell is, from words.
std::vector<std::string> agentWords(const std::string& program);
/// How a shell starts it.
std::string agentLine(const std::string& program);

/// A row of `doctor` about a program that is looked for in PATH.
site::MachineCheck programCheck(std::string_view program, std::string_view launcher,
                                std::string_view remedy);

}  // namespace faultline::hosts
