#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/launch/process.h"
#include "harness/site/processes.h"

namespace faultline::site {

/// Children of this process.
class LocalProcesses final : public Processes {
 public:
  /// One for each; `what` they are, for messages.
  static Result<std::unique_ptr<Processes>> start(
      const std::vector<launch::SpawnOptions>& processes, std::string_view what);

  Status poll(Duration timeout, int interruptFd, const Received& received) override;
  void broadcast(const nlohmann::json& message) override;
  Status kill() override;
  bool allEnded() const override;

 private:
  struct One {
    launch::Process process;
    bool silent = false;  // nothing more will come from it
  };
  LocalProcesses(std::vector<One> processes, std::string_view what)
      : what_(what), processes_(std::move(processes)) {}

  Status drain(std::size_t index, const Received& received);

  std::string what_;  // they are
  std::vector<One> processes_;
};

}  // namespace faultline::site
