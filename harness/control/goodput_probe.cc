#include "harness/control/goodput_probe.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/json.h"
#include "base/unique_fd.h"
#include "harness/launch/process.h"
#include "harness/stats/quantile.h"

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
// A pair that has met and then does not come to its end, as happens on a busy machine, is replaced.
constexpr int kRetries = 1;

/// A file in memory, for what a program prints.
Result<UniqueFd> paper() {
  UniqueFd fd(memfd_create("iperf3", MFD_CLOEXEC));
  if (!fd) return Status::fromErrno(errno, "make a file in memory");
  return fd;
}

std::string textOf(const UniqueFd& fd) {
  std::string text;
  std::array<char, 4096> part;
  for (off_t at = 0;;) {
    const ssize_t got = pread(fd.get(), part.data(), part.size(), at);
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
    at += got;
  }
}

Result<BitsPerSecond> measureWithOnePair(netns::Cluster& cluster, const std::string& program) {
  ASSIGN_OR_RETURN(const UniqueFd report, paper());
  ASSIGN_OR_RETURN(const UniqueFd ignored, paper());
  const std::string to = netns::railAddress(0, 0), from = netns::railAddress(1, 0);
  const std::string name(kGoodputProgram);
  launch::SpawnOptions server;
  server.arguments = {name,         "--server", "--one-off", "--json",
                      "--interval", kInterval,  "--bind",    to};
  server.executable = program;
  server.namespace_fd = cluster.nodeNamespace(0);
  server.stdout_fd = report.get();
  ASSIGN_OR_RETURN(launch::Process listening, launch::Process::spawn(server));
  launch::SpawnOptions client;
  client.arguments = {name,     "--client",          to,    "--bind", from, "--time", kSeconds,
                      "--json", "--connect-timeout", "1000"};
  client.executable = program;
  client.namespace_fd = cluster.nodeNamespace(1);
  client.stdout_fd = ignored.get();
  const TimePoint deadline = now() + kBudget;
  for (int attempt = 0; attempt < kAttempts && now() < deadline; ++attempt) {
    ASSIGN_OR_RETURN(launch::Process sending, launch::Process::spawn(client));
    ASSIGN_OR_RETURN(const launch::ExitStatus ended, sending.waitFor(kBudget));
    if (!ended.ok()) continue;
    ASSIGN_OR_RETURN(const launch::ExitStatus served, listening.waitFor(kBudget));
    (void)served;
    return goodputOf(textOf(report));
  }
  return errorf(Code::kUnavailable, "iperf3 could not connect {} with {}: {}", from, to,
                textOf(ignored).substr(0, 300));
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

Goodput medianGoodput(const std::function<Result<BitsPerSecond>()>& probe) {
  std::vector<double> measured;
  int failed = 0;
  while (std::ssize(measured) < kProbes) {
    const Result<BitsPerSecond> one = probe();
    if (one.ok()) {
      measured.push_back(static_cast<double>(*one));
      failed = 0;
    } else if (++failed > kRetries) {
      return {std::nullopt, fmt::format("a rail could not be measured with {}, and not again: {}",
                                        kGoodputProgram, one.status().message())};
    }
  }
  return {static_cast<BitsPerSecond>(*stats::median(measured))};
}

Goodput BlockGoodput::of(int block, const std::function<Goodput()>& measure) {
  if (block_ == block && known_.value) return known_;
  block_ = block;
  known_ = measure();
  return known_;
}

Goodput measureGoodput(netns::Cluster& cluster) {
  const auto program = findProgram(kGoodputProgram);
  if (!program || cluster.spec().nodes < 2) return {};
  return medianGoodput([&] { return measureWithOnePair(cluster, *program); });
}

}  // namespace faultline::run
