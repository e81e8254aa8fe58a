#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "wire/service.h"

namespace faultline::faultd {

/// From a connection to its first message.
inline constexpr Duration kFirstMessageBudget = std::chrono::seconds(5);

/// From its strike until the policy must have let it: who was refused may ask once more until then.
inline constexpr Duration kAdmissionBudget = std::chrono::seconds(30);

/// What one client may say when, and when its time is over. Pure: whoever has the connection tells
/// it what happens, and asks what that means.
class Dialogue {
 public:
  explicit Dialogue(TimePoint connected) : connected_(connected), heard_(connected) {}

  /// Nothing was said yet.
  bool silent() const { return !asked_ && !strike_; }
  /// What it wants; null: it has not said, or it only asks.
  const wire::ServiceStrike* strike() const { return strike_ ? &*strike_ : nullptr; }

  /// Whether the policy lets it: its strike was prepared. Before that nothing is changed.
  bool admitted() const { return admitted_; }

  /// Whether what it wants is in effect.
  bool struck() const { return strike_ends_.has_value(); }

  /// A message of the client. kInvalidArgument for one that is none, of another version, or not
  /// in its turn: the connection is to be dropped then.
  Result<wire::ToService> take(const nlohmann::json& message, TimePoint now);

  /// An answer to the client's call. kInternal for one that nobody waits for.
  Status answered(const wire::HolderAnswer& answer, TimePoint now);

  /// Its strike has ended by itself.
  void lapsed() { strike_ends_.reset(); }

  /// Whether its longest is over, and nobody has said that it has ended.
  bool outlasts(TimePoint now) const;

  /// When to ask overdue() at the latest; nothing: whenever something happens.
  std::optional<TimePoint> due() const;

  /// Why the connection is to be ended now; nothing: it goes on.
  std::optional<Status> overdue(TimePoint now) const;

 private:
  const TimePoint connected_;
  TimePoint heard_;
  TimePoint first_{};  ///< when it has said what it wants
  bool asked_ = false;
  bool admitted_ = false;
  std::optional<wire::ServiceStrike> strike_;
  std::optional<wire::FaultCall> call_;   ///< that has no answer yet
  std::optional<TimePoint> strike_ends_;  ///< where it was applied; its holder ends it before
};

}  // namespace faultline::faultd
