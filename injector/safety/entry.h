#pragma once

#include <sys/types.h>

#include <concepts>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "injector/safety/operation.h"
#include "injector/safety/target.h"

namespace faultline::safety {

using Json = nlohmann::ordered_json;

/// A process, told from a later one of the same number.
struct Holder {
  pid_t pid = 0;
  std::uint64_t started = 0;  ///< in the kernel's ticks since it booted, as /proc/PID/stat says
  bool operator==(const Holder&) const = default;
};

/// One strike, with all that somebody else needs to undo it.
struct Entry {
  int version = 1;
  std::string id{};      ///< letters, digits, '-': a file name
  std::string bootId{};  ///< of /proc/sys/kernel/random/boot_id
  Holder holder{};
  Target target{};
  std::string kind{};
  std::map<std::string, std::string> parameters{};  ///< as the user has written them
  std::vector<Operation> operations{};
  nlohmann::json configuration{};     ///< what the interface loses by them; null: nothing
  std::vector<std::string> before{};  ///< the command that announces it; empty: none
  std::vector<std::string> after{};   ///< and the one that takes that back
  Duration commandLimit{};
  std::int64_t beganAt = 0;   ///< seconds since 1970
  std::int64_t endsAt = 0;    ///< likewise: when it is to be over at the latest
  TimePoint endsMonotonic{};  ///< the same on the clock of this boot
  std::string user{};         ///< who asked for it
  std::string job{};          ///< in which job
  std::string left{};         ///< why it could not be undone; empty: nobody has failed
  /// How many operations, of the first ones, were begun: the others are not ours to undo. Absent in
  /// entries of an earlier faultline: all may have been.
  std::optional<int> begun{};
  bool operator==(const Entry&) const = default;
};

template <typename V, typename T>
requires std::same_as<std::remove_const_t<T>, Holder>
void visitFields(V& v, T& holder) {
  v.required("pid", holder.pid);
  v.required("started", holder.started);
}

template <typename V, typename T>
requires std::same_as<std::remove_const_t<T>, Entry>
void visitFields(V& v, T& entry) {
  v.required("version", entry.version);
  v.required("id", entry.id);
  v.required("boot_id", entry.bootId);
  v.required("holder", entry.holder);
  v.required("target", entry.target);
  v.required("kind", entry.kind);
  v.required("parameters", entry.parameters);
  v.required("operations", entry.operations);
  v.required("configuration", entry.configuration);
  v.required("before", entry.before);
  v.required("after", entry.after);
  v.required("command_limit", entry.commandLimit);
  v.required("began_at", entry.beganAt);
  v.required("ends_at", entry.endsAt);
  v.required("ends_monotonic", entry.endsMonotonic);
  v.required("user", entry.user);
  v.required("job", entry.job);
  v.required("left", entry.left);
  if constexpr (std::is_const_v<T>) {
    if (entry.begun) v.field("begun", *entry.begun);
  } else {
    v.field("begun", entry.begun);
  }
}

/// From the end of a strike until what it has changed is back, at the latest.
inline constexpr Duration kUndoGrace = std::chrono::seconds(5);

/// Whether its holder should have undone it by now, and so hangs or is stopped. Only for an entry
/// of this boot. Pure.
bool isOverdue(const Entry& entry, TimePoint now);

/// The text of its file: JSON with a check over all of it. Pure.
std::string encode(const Entry& entry);

/// Reads that text back: kInvalidArgument, with the reason, for whatever is not, byte for byte,
/// what encode() has written, and for one without boot or holder. Pure.
Result<Entry> decode(std::string_view text);

/// "port_down of eth1 (0000:17:00.0), by alice, for 2s since ...", for people.
std::string inWords(const Entry& entry);

}  // namespace faultline::safety
