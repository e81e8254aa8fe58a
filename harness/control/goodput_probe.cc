#include "harness/control/goodput_probe.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/file_text.h"
#include "base/json.h"
#include "harness/launch/process.h"
#include "harness/stats/quantile.h"
#include "wire/guard.h"

namespace faultline::run {
namespace {

// What one probe says of a slow rail is within a percent or so; their median is closer.
constexpr int kProbes = 3;
// Each long enough for some thirty round trips of a full queue.
constexpr const char* kSeconds = "1";
constexpr const char* kInterval = "0.1";
// TCP opens its window, and full buckets empty.
constexpr std::size_t kFirstIntervals = 2;
constexpr Duration kBudget = 5s;
// The server listens after some milliseconds; until then clients fail at once.
constexpr int kAttempts = 200;
constexpr Duration kPollPause = 10ms;
// Of what a program prints: a report of some kilobytes.
constexpr std::int64_t kMostReport = 1 << 20;
// A pair that has met and then does not come to its end, as happens on a busy machine, is replaced.
constexpr int kRetries = 1;

/// One program of iperf3, under the guard of its node.
struct Probe {
  std::unique_ptr<site::Processes> guard;
  std::string out;  ///< file of what it prints
  GiveUp giveUp{};

  static Result<Probe> start(site::Cluster& cluster, int node, const std::string& program,
                             std::vector<std::string> arguments, const std::string& folder,
                             const std::string& name, int logFd, const GiveUp& giveUp) {
    const std::string there = cluster.folderThere(node, folder);
    const std::string printed = fmt::format("{}/{}", there, name);
    site::GuardProcess process;
    process.node = node;
    process.folder = folder;
    process.job.outputLimit = kMostReport;
    // Elsewhere it is looked for by its name.
    process.job.programs.push_back({.executable = there == folder ? program : "",
                                    .arguments = std::move(arguments),
                                    .stdoutPath = printed,
                                    .stderrPath = printed + ".err"});
    ASSIGN_OR_RETURN(auto guard, cluster.startGuards({process}, logFd));
    return Probe{std::move(guard), fmt::format("{}/{}", folder, name), giveUp};
  }

  /// Waits for its end.
  Result<launch::ExitStatus> finish() {
    std::optional<launch::ExitStatus> exit;
    const TimePoint deadline = now() + kBudget;
    while (!guard->allEnded() && now() < deadline) {
      constexpr int kNoInterrupt = -1;
      RETURN_IF_ERROR(unlessGivenUp(giveUp, "measure a rail"));
      RETURN_IF_ERROR(
          guard->poll(kPollPause, kNoInterrupt, [&](int, const nlohmann::json& text) -> Status {
            ASSIGN_OR_RETURN(const auto message, wire::fromJson<wire::FromGuard>(text));
            if (const auto* const ended = std::get_if<wire::GuardedEnded>(&message)) {
              exit = launch::ExitStatus{ended->code, ended->signal};
            } else if (const auto* const error = std::get_if<wire::GuardError>(&message)) {
              return error->outcome.status();
            } else if (const auto* const gone = std::get_if<wire::Gone>(&message);
                       gone != nullptr && !exit) {
              return errorf(Code::kInternal, "the guard of iperf3 is gone: {}", gone->message);
            }
            return okStatus();
          }));
    }
    if (!exit) {
      return errorf(Code::kDeadlineExceeded, "iperf3 was not over within {}",
                    formatDuration(kBudget));
    }
    return *exit;
  }
};

Result<BitsPerSecond> measureWithOnePair(site::Cluster& cluster, const std::string& program,
                                         const std::string& folder, int logFd,
                                         const GiveUp& giveUp) {
  constexpr int kServer = 0, kClient = 1;
  const std::string to = cluster.network()[kServer].rails[0].address;
  const std::string from = cluster.network()[kClient].rails[0].address;
  const std::string name(kGoodputProgram);
  ASSIGN_OR_RETURN(Probe server, Probe::start(cluster, kServer, program,
                                              {name, "--server", "--one-off", "--json",
                                               "--interval", kInterval, "--bind", to},
                                              folder, "server.json", logFd, giveUp));
  const TimePoint deadline = now() + kBudget;
  for (int attempt = 0; attempt < kAttempts && now() < deadline; ++attempt) {
    ASSIGN_OR_RETURN(Probe client, Probe::start(cluster, kClient, program,
                                                {name, "--client", to, "--bind", from, "--time",
                                                 kSeconds, "--json", "--connect-timeout", "1000"},
                                                folder, "client.json", logFd, giveUp));
    ASSIGN_OR_RETURN(const launch::ExitStatus ended, client.finish());
    if (!ended.ok()) continue;
    RETURN_IF_ERROR(server.finish().status());
    return goodputOf(fileText(server.out));
  }
  return errorf(Code::kUnavailable, "iperf3 could not connect {} with {}: {}", from, to,
                fileText(folder + "/client.json").substr(0, 300));
}

}  // namespace

std::optional<std::string> findProgram(std::string_view name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/" + std::string(name);
    if (access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file)) return file;
  }
  return std::nullopt;
}

Result<BitsPerSecond> goodputOf(std::string_view report) {
  const auto parsed = parseJson(report);
  const nlohmann::json tree = parsed.ok() ? *parsed : nlohmann::json();
  if (tree.is_object() && tree.contains("intervals") && tree["intervals"].is_array()) {
    double bytes = 0, seconds = 0;
    std::size_t number = 0;
    for (const auto& interval : tree["intervals"]) {
      if (number++ < kFirstIntervals) continue;
      const auto sum = interval.value("sum", nlohmann::json::object());
      // What is left over at the end is no whole interval.
      if (sum.value("seconds", 0.0) < std::atof(kInterval) / 2) continue;
      bytes += sum.value("bytes", 0.0);
      seconds += sum.value("seconds", 0.0);
    }
    constexpr double kBitsPerByte = 8;
    if (bytes > 0 && seconds > 0) return static_cast<BitsPerSecond>(bytes * kBitsPerByte / seconds);
  }
  return errorf(Code::kInvalidArgument, "iperf3 printed no result: {}", report.substr(0, 300));
}

Result<Goodput> medianGoodput(const std::function<Result<BitsPerSecond>()>& probe) {
  std::vector<double> measured;
  int failed = 0;
  while (std::ssize(measured) < kProbes) {
    const Result<BitsPerSecond> one = probe();
    if (one.ok()) {
      measured.push_back(static_cast<double>(*one));
      failed = 0;
    } else if (one.status().code() == Code::kAborted) {
      return one.status();
    } else if (++failed > kRetries) {
      return Goodput{std::nullopt,
                     fmt::format("a rail could not be measured with {}, and not again: {}",
                                 kGoodputProgram, one.status().message())};
    }
  }
  return Goodput{static_cast<BitsPerSecond>(*stats::median(measured))};
}

Result<Goodput> BlockGoodput::of(int block, const std::function<Result<Goodput>()>& measure) {
  if (block_ == block && known_.value) return known_;
  ASSIGN_OR_RETURN(known_, measure());
  block_ = block;  // and not before: what is known is still of another one when that fails
  return known_;
}

Result<Goodput> measureGoodput(site::Cluster& cluster, const std::string& folder, int logFd,
                               const GiveUp& giveUp) {
  const auto program = findProgram(kGoodputProgram);
  if (!program || cluster.nodes() < 2) return Goodput{};
  return medianGoodput(
      [&] { return measureWithOnePair(cluster, *program, folder, logFd, giveUp); });
}

}  // namespace faultline::run
