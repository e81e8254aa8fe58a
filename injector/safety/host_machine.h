#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "injector/netlink/socket.h"
#include "injector/safety/strike.h"

namespace faultline::safety {

/// This machine, in the network namespace of a socket.
class HostMachine final : public Machine {
 public:
  /// Runs a command without a shell; kUnavailable when it fails or takes longer.
  using Run = std::function<Status(const std::vector<std::string>& command, Duration limit)>;
  /// What else must be there again after an undo, and is not yet; empty: nothing.
  using Missing = std::function<Result<std::string>(int ifindex)>;

  HostMachine(netlink::Socket& socket, Run run) : socket_(socket), run_(std::move(run)) {}

  /// Why nothing is to be done to it; ok: nothing speaks against it.
  using Allowed = std::function<Status()>;

  /// Told of each change that was made: whether it broke something, and the moments between which.
  using Changed = std::function<void(bool broken, TimePoint before, TimePoint after)>;

  void tell(Changed changed) { changed_ = std::move(changed); }
  void alsoAwait(Missing missing) { missing_ = std::move(missing); }
  /// Asked with each check.
  void alsoRequire(Allowed allowed) { allowed_ = std::move(allowed); }

  /// The target's index now.
  Result<int> find(const Target& target);

  Status check(const Target& target, const Operation& operation) override;
  Status apply(const Target& target, const Operation& operation) override;
  Result<bool> isInEffect(const Target& target, const Operation& operation) override;
  Status undo(const Target& target, const Operation& operation) override;
  Result<nlohmann::json> configuration(const Target& target, bool loses) override;
  Status settle(const Target& target, const nlohmann::json& configuration) override;
  Status run(const std::vector<std::string>& command, Duration limit) override;

 private:
  Status change(bool broken, const std::function<Status()>& make);
  Result<std::string> whatIsMissing(const Target& target, const nlohmann::json& configuration);

  netlink::Socket& socket_;
  Run run_;
  Missing missing_;
  Allowed allowed_;
  Changed changed_;
};

/// How long settle() waits.
inline constexpr Duration kSettlePatience = std::chrono::seconds(10);

}  // namespace faultline::safety
