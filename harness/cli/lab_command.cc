#include "harness/cli/lab_command.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/give_up.h"
#include "base/printable.h"
#include "base/units.h"
#include "harness/cli/cli.h"
#include "harness/cli/output.h"
#include "harness/command/variables.h"
#include "harness/control/interrupt.h"
#include "harness/launch/privileges.h"
#include "harness/site/rdma_vm/laboratory.h"

namespace faultline::cli {
namespace {

constexpr const char* kLabVerb = "lab";

struct LabOptions {
  int hosts = 2;
  int rails = 2;
  int memory = rdma_vm::VmSpec{}.memoryMiB;
  std::string share;
  std::string limit = "60s";
  std::vector<int> on;
  std::vector<std::string> command;
  bool json = false;
};

/// Placeholders of the program's words that differ from host to host.
std::map<std::string, std::string> variablesOf(int host, const rdma_vm::VmSpec& spec) {
  std::map<std::string, std::string> variables{{"host", std::to_string(host)},
                                               {"master_address", rdma_vm::nicAddress(0, 0)}};
  for (int other = 0; other < spec.hosts; ++other) {
    variables[fmt::format("address_{}", other)] = rdma_vm::nicAddress(other, 0);
    for (int rail = 0; rail < spec.rails; ++rail) {
      variables[fmt::format("rail_{}_address_{}", rail, other)] =
          rdma_vm::nicAddress(other, rail + 1);
    }
  }
  return variables;
}

Result<std::vector<rdma_vm::Laboratory::HostRequest>> requestsOf(const LabOptions& options,
                                                                 const rdma_vm::VmSpec& spec) {
  ASSIGN_OR_RETURN(const Duration limit, parseDuration(options.limit));
  std::vector<int> on = options.on;
  for (int host = 0; options.on.empty() && host < spec.hosts; ++host) on.push_back(host);
  std::vector<rdma_vm::Laboratory::HostRequest> requests;
  for (const int host : on) {
    if (host < 0 || host >= spec.hosts) {
      return errorf(Code::kInvalidArgument,
                    "--on: there is no host {}; of {} hosts, possible are 0 to {}", host,
                    spec.hosts, spec.hosts - 1);
    }
    rdma_vm::RunRequest request;
    request.limit = limit;
    const auto variables = variablesOf(host, spec);
    for (const std::string& word : options.command) {
      ASSIGN_OR_RETURN(request.arguments.emplace_back(), command::expand(word, variables));
    }
    requests.push_back({host, std::move(request)});
  }
  return requests;
}

/// Why it ended, where that was not the program's own doing, with a comma.
std::string because(const rdma_vm::RunOutput& output) {
  if (!output.problem.empty()) return ", because its guard failed: " + printable(output.problem);
  return output.timedOut ? ", because its time was over" : "";
}

void printText(const std::vector<rdma_vm::Laboratory::HostRequest>& requests,
               const std::vector<rdma_vm::RunOutput>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const rdma_vm::RunOutput& output = outputs[i];
    std::cout << fmt::format("# host {}: {}{}\n", requests[i].host, output.exit.toString(),
                             because(output));
    // A file gets every byte of a program, a terminal what cannot command it.
    std::cout << (::isatty(STDOUT_FILENO) == 1 ? printable(output.out) : output.out) << std::flush;
    std::cerr << (::isatty(STDERR_FILENO) == 1 ? printable(output.err) : output.err);
  }
}

void printJson(const std::vector<rdma_vm::Laboratory::HostRequest>& requests,
               const std::vector<rdma_vm::RunOutput>& outputs) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    rows.push_back({{"host", requests[i].host},
                    {"exit_code", outputs[i].exit.code},
                    {"signal", outputs[i].exit.signal},
                    {"timed_out", outputs[i].timedOut},
                    {"problem", outputs[i].problem.empty() ? Json() : Json(outputs[i].problem)},
                    {"stdout", outputs[i].out},
                    {"stderr", outputs[i].err}});
  }
  print({{"hosts", std::move(rows)}});
}

/// The absolute path of the folder, by which guests see it.
Result<std::string> folderToShare(const std::string& given) {
  struct stat info {};
  const std::string path = std::filesystem::absolute(given).string();
  if (::stat(path.c_str(), &info) != 0) {
    return Status::fromErrno(errno, "--share: look for the folder " + path);
  }
  if (S_ISDIR(info.st_mode)) return path;
  return errorf(Code::kInvalidArgument,
                "--share: {} is no folder; a file is shared with its folder", path);
}

int runLab(const LabOptions& options) {
  rdma_vm::VmSpec spec;
  spec.hosts = options.hosts;
  spec.rails = options.rails;
  spec.memoryMiB = options.memory;
  if (!options.share.empty()) {
    const auto folder = folderToShare(options.share);
    if (!folder.ok()) return fail(kLabVerb, folder.status(), kExitUsage);
    spec.sharedFolder = *folder;
  }
  if (const Status status = spec.check(); !status.ok()) return fail(kLabVerb, status, kExitUsage);
  const auto requests = requestsOf(options, spec);
  if (!requests.ok()) return fail(kLabVerb, requests.status(), kExitUsage);
  const auto files = rdma_vm::Laboratory::findFiles();
  if (!files.ok()) return fail(kLabVerb, files.status(), kExitCannotRun);
  if (const auto entered = launch::enterPrivileges(); !entered.ok()) {
    return fail(kLabVerb, entered.status(), kExitCannotRun);
  }
  auto interrupt = run::Interrupt::watch();
  if (!interrupt.ok()) return fail(kLabVerb, interrupt.status(), kExitCannotRun);
  std::cerr << fmt::format("booting {} hosts with {} rails, kernel {}\n", spec.hosts, spec.rails,
                           files->kernel.version);
  const GiveUp giveUp = [&interrupt] { return interrupt->pending(); };
  const auto failed = [&](const Status& status) {
    return fail(kLabVerb, status,
                status.code() == Code::kAborted && giveUp() ? kExitInterrupted : kExitCannotRun);
  };
  auto laboratory = rdma_vm::Laboratory::boot(spec, *files, giveUp);
  if (!laboratory.ok()) return failed(laboratory.status());
  std::cerr << "they are up\n";
  const auto outputs = (*laboratory)->runAll(*requests);
  if (!outputs.ok()) return failed(outputs.status());
  options.json ? printJson(*requests, *outputs) : printText(*requests, *outputs);
  if (giveUp()) {
    std::cerr << "interrupted: this is what was printed until then\n";
    return kExitInterrupted;
  }
  if (std::ranges::any_of(*outputs, [](const auto& output) { return !output.problem.empty(); })) {
    return kExitCannotRun;
  }
  for (const rdma_vm::RunOutput& output : *outputs) {
    if (!output.exit.ok() || output.timedOut) return kExitExpectation;
  }
  return kExitOk;
}

}  // namespace

CLI::App* addLabCommand(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      kLabVerb, "Run a program on the hosts of a soft-RoCE laboratory: guests with RDMA devices");
  const auto options = std::make_shared<LabOptions>();
  command->add_option("--hosts", options->hosts, "guests")->capture_default_str();
  command->add_option("--rails", options->rails, "NICs of each, with an RDMA device (rxe0, ...)")
      ->capture_default_str();
  command->add_option("--memory", options->memory, "of each guest, in MiB")->capture_default_str();
  command->add_option("--share", options->share,
                      "a folder that guests may write; what else they write is gone with them");
  command->add_option("--limit", options->limit, "longest time of the program, e.g. 2min")
      ->capture_default_str();
  command->add_option("--on", options->on, "only on these hosts, counted from 0")
      ->delimiter(',')
      ->allow_extra_args(false);  // '--' would be taken as their end, and be gone
  command
      ->add_option("program", options->command,
                   "program and arguments, after '--'; {host}, {master_address}, {address_1}, "
                   "{rail_0_address_1} are replaced")
      ->required();
  addJsonFlag(*command, options->json);
  setFooter(*command, "",
            {"faultline lab -- rdma link", "faultline lab --on 0 -- ibv_devinfo -v",
             "faultline lab --limit 2min -- sh -c \\\n    'if [ {host} = 0 ]; then ib_write_bw -d "
             "rxe0; else sleep 3; ib_write_bw -d rxe0 {master_address}; fi'"},
            "0 every program ended with 0, 1 one did not, 2 usage mistake, 3 there can be no "
            "laboratory here, or it failed, 130 interrupted, with what was printed until then");
  command->callback([options, &exit_code] { exit_code = runLab(*options); });
  return command;
}

}  // namespace faultline::cli
