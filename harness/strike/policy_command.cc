#include "harness/strike/policy_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "injector/faults/command_holder.h"
#include "injector/safety/policy_file.h"

namespace faultline::strike {

safety::HostMachine::Run policyCommand(const safety::Entry& entry) {
  std::vector<std::string> environment{"FAULTLINE_KIND=" + entry.kind,
                                       "FAULTLINE_INTERFACE=" + entry.target.interface,
                                       "FAULTLINE_STRIKE=" + entry.id};
  return [environment = std::move(environment)](const std::vector<std::string>& command,
                                                Duration limit) -> Status {
    // Root runs it, perhaps long after the policy was read.
    RETURN_IF_ERROR(safety::trustedPath(command.front()).status());
    injector::HeldCommands held;
    held.words[static_cast<std::size_t>(injector::Step::kPrepare)] = command;
    held.environment = environment;
    held.limit = limit;
    ASSIGN_OR_RETURN(const auto holder, injector::CommandHolder::start(held));
    ASSIGN_OR_RETURN(const injector::CommandEnd end, holder->run(injector::Step::kPrepare));
    if (end.ok()) return okStatus();
    return errorf(Code::kUnavailable, "{}: {}{}{}", fmt::join(command, " "),
                  end.timed_out ? "it took too long and was killed"
                  : end.ran     ? fmt::format("exit code {}", end.code)
                                : std::string("it could not be started"),
                  end.errors.empty() ? "" : ": ", printable(end.errors));
  };
}

}  // namespace faultline::strike
