#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

/// Faults of queue pairs, without verbs types: what the shim in somebody's program and the
/// controller outside of it have in common. Nothing here does input or output.
namespace faultline::injector::verbs {

/// What is done to a queue pair. Named as the kinds of faults are.
enum class Effect {
  kQpError,            ///< it goes to the error state
  kPostError,          ///< posting a work request fails
  kCompletionRewrite,  ///< a successful completion becomes an error
  kCompletionLoss,     ///< a completion never arrives
  kQpDelay,            ///< completions arrive late
  kQpRate,             ///< completions arrive at the pace of a slower link
};

/// Which work requests are meant.
enum class Side { kSend, kRecv, kBoth };

std::string_view effectName(Effect effect);
std::optional<Effect> findEffect(std::string_view name);
std::string_view sideName(Side side);
std::optional<Side> findSide(std::string_view name);

/// Whether `asked` includes `actual`, which is not kBoth.
constexpr bool includes(Side asked, Side actual) { return asked == Side::kBoth || asked == actual; }

/// The number of a status of `enum ibv_wc_status` by the end of its name in small letters, e.g.
/// "retry_exc_err"; the numbers are part of the verbs ABI.
std::optional<int> findStatus(std::string_view name);
/// The number of an errno by its name, e.g. "ENOMEM"; only those that posting can return.
std::optional<int> findErrno(std::string_view name);

/// In `ibv_wc.vendor_err` of every completion that the shim has turned into an error, so that it
/// can be told from a genuine one ("FAULTLINE", as far as 32 bits go).
inline constexpr std::uint32_t kInjectedVendorError = 0xFA171D00;

/// One queue pair, as far as one can choose by it.
struct QueuePairFacts {
  std::string device;            ///< "mlx5_0"
  std::uint32_t number = 0;      ///< its QP number, unique on its device
  std::uint32_t peerNumber = 0;  ///< 0: not connected
  std::uint32_t peerLid = 0;     ///< 0: none, as with RoCE
  std::string peerGid;           ///< in the form of inet_ntop(3); empty: none
  std::string type;              ///< "RC", "UC", "UD", ...
  std::string state;             ///< "RTS", "ERR", ...
  bool operator==(const QueuePairFacts&) const = default;
};

/// Which queue pairs are meant; what is not set does not matter.
struct Match {
  std::string device{};
  std::uint32_t number = 0;
  std::uint32_t peerNumber = 0;
  std::uint32_t peerLid = 0;
  std::string peerGid{};
  bool operator==(const Match&) const = default;
};

bool matches(const Match& match, const QueuePairFacts& facts);

/// "queue pairs of mlx5_0 with peer 17", for messages.
std::string inWords(const Match& match);

/// Which of `count` candidates a random choice with this seed takes; count > 0.
std::size_t chooseOne(std::size_t count, std::uint64_t seed);

/// When it strikes, in each process for itself. Operations and bytes are those of all its queue
/// pairs that are meant, since the fault was armed.
struct Trigger {
  std::uint64_t afterOperations = 0;
  std::uint64_t afterBytes = 0;
  double probability = 1;    ///< of each operation after that
  std::uint64_t budget = 0;  ///< how often at most; 0: no limit
  std::uint64_t seed = 1;
  bool operator==(const Trigger&) const = default;

  /// Whether there is nothing to wait for.
  bool now() const { return afterOperations == 0 && afterBytes == 0 && probability >= 1; }
};

/// One fault as it is armed.
struct Rule {
  Effect effect = Effect::kQpError;
  Match match{};
  bool one = false;  ///< only one queue pair of the process, chosen by the seed
  Side side = Side::kSend;
  Trigger trigger{};
  int error = 0;                    ///< kPostError: errno
  int status = 0;                   ///< kCompletionRewrite: enum ibv_wc_status
  Duration delay{};                 ///< kQpDelay
  std::uint64_t bitsPerSecond = 0;  ///< kQpRate
  Duration lease{};                 ///< it ends when its controller is silent for so long
  bool operator==(const Rule&) const = default;

  /// Whether completions are held back.
  bool holds() const { return effect == Effect::kQpDelay || effect == Effect::kQpRate; }
  /// Whether what is sent has to be noted, since its completions do not tell its bytes.
  bool pacesSends() const { return effect == Effect::kQpRate && includes(side, Side::kSend); }
};

inline constexpr Duration kShortestLease = 100ms;
inline constexpr Duration kLongestLease = 1min;
inline constexpr Duration kLongestDelay = 10s;

/// kInvalidArgument when a value is missing for its effect or out of range.
Status check(const Rule& rule);

/// What has happened because of one fault so far.
struct Counters {
  std::uint64_t operations = 0;  ///< that it looked at
  std::uint64_t bytes = 0;       ///< posted, or received
  std::uint64_t struck = 0;      ///< decided to strike
  std::uint64_t happened = 0;    ///< took effect: the program has got it
  std::uint64_t held = 0;        ///< completions that are held back now
  std::uint64_t released = 0;    ///< held completions that were delivered
  std::uint64_t dropped = 0;     ///< held completions that went with their queue pair or queue
  std::uint64_t releasedBytes = 0;
  std::uint64_t heldNanoseconds = 0;      ///< of all that were delivered
  std::uint64_t shortestNanoseconds = 0;  ///< of a delivered one; 0: none yet
  std::uint64_t genuineErrors = 0;        ///< error completions that are not ours, without flushes
  std::uint64_t flushErrors = 0;          ///< work flushed because its queue pair is in error
  std::uint64_t genuinePostErrors = 0;    ///< posts that the device refused, without the next
  std::uint64_t fullQueues = 0;           ///< posts that it refused with ENOMEM
  std::uint64_t failures = 0;             ///< could not be done, e.g. ibv_modify_qp failed
  std::uint64_t inErrorBefore = 0;        ///< queue pairs that were in error without kQpError
  std::uint64_t uncovered = 0;            ///< completions that no fault could look into
  std::uint64_t queuePairs = 0;           ///< that it concerns now
  bool operator==(const Counters&) const = default;
};

}  // namespace faultline::injector::verbs
