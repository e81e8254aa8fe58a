#include "harness/cli/faultd_command.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string_view>

#include "harness/cli/cli.h"
#include "harness/cli/output.h"
#include "harness/faultd/service.h"

namespace faultline::cli {
namespace {

constexpr std::string_view kFaultd = "faultd";

int serve(const faultd::ServiceOptions& options) {
  auto service = faultd::Service::start(options);
  if (!service.ok()) return fail(kFaultd, service.status(), kExitCannotRun);
  const Status served = service->serve();
  if (served.ok()) return kExitOk;
  return fail(kFaultd, served,
              served.code() == Code::kNotRestored ? kExitNotRestored : kExitCannotRun);
}

}  // namespace

CLI::App* addFaultdCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "faultd", "Serve strikes on this host's interfaces to those whom the policy names (root)");
  const auto options = std::make_shared<faultd::ServiceOptions>();
  command->add_option("--socket", options->socket, "Where it listens")
      ->type_name("PATH")
      ->capture_default_str();
  command->add_option("--policy", options->policy, "The file that allows strikes")
      ->type_name("FILE")
      ->capture_default_str();
  command
      ->add_option("--journal", options->journal,
                   "Folder for the record of each strike, used to undo it")
      ->type_name("DIR")
      ->capture_default_str();
  setFooter(*command,
            "It undoes a strike when its connection closes, its lease or its time is over, and "
            "what others have left, too. To be started by systemd (packaging/), or by hand.",
            {"faultline faultd"},
            "0 it was told to end and nothing is left, 2 usage mistake, 3 it cannot serve here, 4 "
            "something could not be restored");
  command->callback([options, &exit_code] { exit_code = serve(*options); });
  return command;
}

}  // namespace faultline::cli
