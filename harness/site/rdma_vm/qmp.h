#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/give_up.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::rdma_vm {

/// What qemu is told over QMP, one JSON object and a line feed each
/// (docs/interop/qmp-spec of qemu). Pure.
std::string qmpCapabilities();
/// Plugs the cable of a NIC in, or pulls it out.
std::string qmpSetLink(const std::string& nic, bool up);

/// What a line from qemu means for who waits for the answer to a command: nothing (a greeting, an
/// event), success, or qemu's refusal. kIo when it is not QMP. Pure.
Result<std::optional<Status>> qmpAnswer(std::string_view line);

/// One guest's qemu. Not thread-safe.
class QmpClient {
 public:
  explicit QmpClient(UniqueFd fd) : fd_(std::move(fd)) {}

  /// The greeting and the first command: qemu then obeys. kDeadlineExceeded after `budget`,
  /// kAborted when it was given up.
  Status begin(Duration budget, const GiveUp& giveUp);
  Status setLink(const std::string& nic, bool up, Duration budget, const GiveUp& giveUp);

 private:
  Status command(const std::string& text, Duration budget, const GiveUp& giveUp);
  Result<std::string> readLine(TimePoint deadline, const GiveUp& giveUp);

  UniqueFd fd_;
  std::string received_;
  int unanswered_ = 0;  // commands, of which all but the last were given up
};

}  // namespace faultline::rdma_vm
