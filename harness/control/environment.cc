#include "harness/control/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <set>
#include <thread>

#include "base/file_text.h"
#include "base/input_file.h"
#include "base/text.h"
#include "base/version.h"
#include "harness/control/program_plan.h"
#include "resilient_ccl/transport/tcp/congestion_control.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::run {
namespace {

namespace fs = std::filesystem;

/// Where NVIDIA's driver says what it drives.
constexpr const char* kNvidiaGpus = "/proc/driver/nvidia/gpus";
constexpr const char* kNvidiaVersion = "/proc/driver/nvidia/version";

/// So much of what a process printed is searched for a version, which stands at its beginning.
constexpr std::size_t kHeadOfOutput = 64 << 10;

/// Read for the environment when no cluster has said what its nodes use.
constexpr std::array kTcpSettings{"tcp_rmem", "tcp_wmem", "tcp_retries2",
                                  "tcp_slow_start_after_idle"};

/// The value of a setting of this process's network namespace on one line, or "".
std::string setting(std::string_view name) {
  std::string text = fileText(fmt::format("/proc/sys/net/ipv4/{}", name));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& character : text) character = character == '\t' ? ' ' : character;
  return text;
}

/// Calls `visit` with every line, without its end.
template <typename Visit>
void forEachLine(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    visit(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

/// Versions that the build was made with (see CMakeLists.txt).
std::map<std::string, std::string> versions() {
  return {{"faultline", std::string(versionNumber())},
          {"compiler", FAULTLINE_COMPILER},
          {"build", FAULTLINE_BUILD_TYPE},
          {"libnl", FAULTLINE_VERSION_LIBNL},
          {"yaml-cpp", FAULTLINE_VERSION_YAML_CPP},
          {"fmt", FAULTLINE_VERSION_FMT},
          {"spdlog", FAULTLINE_VERSION_SPDLOG},
          {"nlohmann-json", FAULTLINE_VERSION_JSON},
          {"CLI11", FAULTLINE_VERSION_CLI11},
          {"OpenSSL", FAULTLINE_VERSION_OPENSSL}};
}

/// The word at the beginning, of digits and dots, "580.159.04"; empty: there is none with a dot.
std::string_view versionAt(std::string_view text) {
  std::string_view word = text.substr(0, text.find_first_not_of("0123456789."));
  while (word.ends_with('.')) word.remove_suffix(1);  // of a sentence
  const bool version = word.find('.') != std::string_view::npos && word.front() != '.';
  return version ? word : std::string_view();
}

std::optional<std::string> describeGpus() {
  std::vector<std::string> informations;
  std::error_code error;
  for (fs::directory_iterator at(kNvidiaGpus, error), end; !error && at != end;
       at.increment(error)) {
    informations.push_back(fileText((at->path() / "information").string()));
  }
  return gpuModels(informations, fileText(kNvidiaVersion));
}

}  // namespace

std::optional<std::string> gpuModels(std::span<const std::string> informations,
                                     std::string_view version) {
  if (informations.empty()) return std::nullopt;
  std::map<std::string, int> models;
  for (const std::string& information : informations) {
    std::string model = "unknown";
    forEachLine(information, [&](std::string_view line) {
      constexpr std::string_view kModel = "Model:";
      if (!line.starts_with(kModel)) return;
      line.remove_prefix(kModel.size());
      const std::size_t begin = line.find_first_not_of(" \t");
      if (begin != std::string_view::npos) model = line.substr(begin);
    });
    ++models[model];
  }
  std::string text;
  for (const auto& [model, count] : models) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, model);
  }
  std::string_view driver;
  forEachLine(version, [&](std::string_view line) {
    // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ..."
    if (!line.starts_with("NVRM version:")) return;
    for (std::size_t at = 0; driver.empty() && at != std::string_view::npos;) {
      at = line.find_first_not_of(' ', at);
      if (at == std::string_view::npos) return;
      driver = versionAt(line.substr(at));
      at = line.find(' ', at);
    }
  });
  if (!driver.empty()) text += fmt::format(", driver {}", driver);
  return text;
}

std::set<std::string> ncclVersionsTold(std::string_view printed) {
  std::set<std::string> versions;
  forEachLine(printed, [&](std::string_view line) {
    constexpr std::string_view kBefore = "NCCL version ";
    const std::size_t at = line.find(kBefore);
    if (at == std::string_view::npos) return;
    const std::string_view version = versionAt(line.substr(at + kBefore.size()));
    if (!version.empty()) versions.emplace(version);
  });
  return versions;
}

std::optional<std::string> ncclVersionOf(std::span<const RecordedRun> runs,
                                         const std::string& folder) {
  std::set<std::string> versions;
  for (const RecordedRun& recorded : runs) {
    for (const auto& process : recorded.run.processes) {
      const auto file = openInput(fs::path(folder) / process.output / kStdoutFile);
      if (!file.ok()) continue;
      std::string head(kHeadOfOutput, '\0');
      const ssize_t got = ::pread(file->get(), head.data(), head.size(), 0);
      head.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      versions.merge(ncclVersionsTold(head));
    }
  }
  if (versions.empty()) return std::nullopt;
  return join(std::vector<std::string_view>(versions.begin(), versions.end()), ", ");
}

std::string cpuModel(std::string_view cpuinfo, std::string_view architecture) {
  std::string model;
  forEachLine(cpuinfo, [&](std::string_view line) {
    if (!model.empty() || !line.starts_with("model name")) return;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    line.remove_prefix(colon + 1);
    while (line.starts_with(' ')) line.remove_prefix(1);
    model = line;
  });
  return model.empty() ? std::string(architecture) : model;
}

std::vector<std::string> loadedLibraries(std::string_view maps) {
  std::set<std::string> paths;
  forEachLine(maps, [&](std::string_view line) {
    const std::size_t path_at = line.find('/');
    if (path_at == std::string_view::npos) return;
    const std::string_view path = line.substr(path_at);
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (name.ends_with(".so") || name.find(".so.") != std::string_view::npos) paths.emplace(path);
  });
  return {paths.begin(), paths.end()};
}

reports::Environment describeEnvironment(const std::map<std::string, std::string>& cluster) {
  reports::Environment environment;
  std::string architecture;
  utsname kernel{};
  if (::uname(&kernel) == 0) {
    environment.kernel = fmt::format("{} {} {}", kernel.sysname, kernel.release, kernel.machine);
    architecture = kernel.machine;
  }
  environment.cpu = cpuModel(fileText("/proc/cpuinfo"), architecture);
  environment.gpu = describeGpus();
  environment.cores = static_cast<int>(std::thread::hardware_concurrency());
  environment.versions = versions();
  environment.git = gitCommit();
  environment.congestion_control =
      fmt::format("{} in slow start, then {}", transport::tcp::kInSlowStart,
                  transport::tcp::streamCongestionControl());
  for (const char* const name : kTcpSettings) {
    if (const std::string value = setting(name); !value.empty()) environment.tcp[name] = value;
  }
  const auto timeout = transport::tcp::streamLeastTimeout();
  environment.tcp["TCP_RTO_MIN_US"] =
      timeout ? std::to_string(timeout->count()) : "not to be chosen on this kernel";
  for (const auto& [name, value] : cluster) {
    if (name.starts_with("tcp_")) {
      environment.tcp[name] = value;
    } else if (name != "kernel") {
      environment.qdisc[name] = value;
    }
  }
  environment.libraries = loadedLibraries(fileText("/proc/self/maps"));
  return environment;
}

}  // namespace faultline::run
