#include "harness/cli/machine_checks.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <thread>

#include "base/sanitizers.h"
#include "base/text.h"
#include "harness/cli/nccl_bootstrap.h"
#include "harness/command/pattern.h"
#include "harness/control/goodput_probe.h"
#include "harness/control/keep_awake.h"
#include "harness/faultd/question.h"
#include "harness/launch/executable.h"
#include "harness/site/kinds/kinds.h"
#include "resilient_ccl/fabric/network_findings.h"
#include "resilient_ccl/fabric/network_snapshot.h"
#include "resilient_ccl/nccl/counters.h"
#include "resilient_ccl/nccl/device.h"
#include "resilient_ccl/nccl/options.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMachineGroup = "this machine and this build";

/// Rows of what no scenario of the first kind of clusters uses.
std::string labGroup() {
  return fmt::format("real networks and accelerators (not needed for {} clusters)",
                     site::kinds().front()->name);
}

/// What the build makes of the rooms nccl and nccl_bench: beside the program, in these folders.
constexpr const char* kPlugin = "libnccl-net-faultline.so";
constexpr const char* kPluginFolder = "resilient_ccl/nccl";
constexpr const char* kNcclBench = "nccl_bench";

constexpr unsigned kEnoughCores = 2;
/// Of the quick start's four ranks with their buffers, and the controller, with room to spare.
constexpr long kEnoughMemoryMiB = 512;

/// The value of a line of /proc/meminfo in MiB, or nothing.
std::optional<long> meminfoMiB(std::string_view key) {
  constexpr long kKiBPerMiB = 1024;
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    long value = 0;
    if (word == key && file >> value) return value / kKiBPerMiB;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

bool sanitized() {
#if defined(FAULTLINE_ADDRESS_SANITIZER) || defined(FAULTLINE_THREAD_SANITIZER)
  return true;
#else
  return false;
#endif
}

bool optimised() {
#if defined(__OPTIMIZE__)
  return true;
#else
  return false;
#endif
}

void addMachine(std::vector<MachineCheck>& checks) {
  const unsigned cores = std::thread::hardware_concurrency();
  checks.push_back({kMachineGroup, "cores", cores >= kEnoughCores, false,
                    fmt::format("{} (steady times need at least {})", cores, kEnoughCores),
                    "ranks that do not wait for each other's CPU time",
                    "times are mostly those of the scheduler: overheads mean little",
                    "use a machine with more cores, or fewer ranks"});
  const auto memory = meminfoMiB("MemAvailable:");
  checks.push_back(
      {kMachineGroup, "memory", memory.value_or(0) >= kEnoughMemoryMiB, false,
       memory ? fmt::format("{} MiB available (at least {} are needed)", *memory, kEnoughMemoryMiB)
              : "cannot be read",
       "buffers of all ranks (nodes x ranks_per_node x gradient size, several times)",
       "the kernel may kill ranks, and the run fails",
       "close other programs, or use smaller gradients"});
  const auto iperf = run::findProgram(run::kGoodputProgram);
  checks.push_back({kMachineGroup, "iperf3", iperf.has_value(), false, iperf.value_or("not found"),
                    "the goodput of rails, against which collective calls are compared",
                    "sweeps have no columns for ideal, bound and model",
                    "install iperf3 (apt-get install iperf3)"});
  const Status awake = run::keepProcessorsAwake().status();  // for a moment
  checks.push_back({kMachineGroup, "processors awake", awake.ok(), false,
                    awake.ok() ? "held for a moment" : awake.message(),
                    "noise.keep_awake: threads that wait for no processor to wake",
                    "short steps end later and less evenly (docs/paper.md)",
                    "run as root; where the kernel has no idle states nothing helps"});
  const bool fast = !sanitized() && optimised();
  checks.push_back({kMachineGroup, "build for measuring", fast, false,
                    sanitized()   ? "built with sanitizers"
                    : optimised() ? "optimised, without sanitizers"
                                  : "built without optimisation",
                    "times that mean something", "everything is several times slower",
                    "cmake --preset release && cmake --build --preset release"});
#ifdef FAULTLINE_SQLITE
  constexpr bool kSqlite = true;
#else
  constexpr bool kSqlite = false;
#endif
  checks.push_back({kMachineGroup, "SQLite", kSqlite, false, kSqlite ? "built in" : "not built in",
                    "faultline history: results of many nights and their trend",
                    "results are compared two by two (faultline compare)",
                    "install libsqlite3-dev, configure and build again"});
  const bool re2 = command::makeRe2Engine() != nullptr;
  checks.push_back({kMachineGroup, "RE2", re2, false, re2 ? "built in" : "not built in",
                    "metrics by regular expression in linear time",
                    "they are matched in processes that are killed when they take too long",
                    "install libre2-dev, configure and build again"});
#ifdef FAULTLINE_VERBS_SHIM_BUILT
  constexpr bool kShim = true;
#else
  constexpr bool kShim = false;
#endif
  checks.push_back(
      {kMachineGroup, "verbs shim", kShim, false,
       kShim ? "libfaultline-verbs.so is built" : "not built: no headers of libibverbs",
       "faults of queue pairs in programs that use RDMA (docs/verbs.md)",
       "faultline inject can only reach programs that have a shim of another build",
       "install libibverbs-dev, configure and build again"});
}

/// Names of the entries of a folder; none when it cannot be read.
std::vector<std::string> entriesOf(const char* folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  return join(std::vector<std::string_view>(words.begin(), words.end()), ", ");
}

/// "2.18.3" of a loadable NCCL, or "" and why in `problem`.
std::string ncclVersion(std::string& problem) {
  struct Close {
    void operator()(void* library) const { ::dlclose(library); }
  };
  const std::unique_ptr<void, Close> library(::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL));
  if (library == nullptr) {
    const char* const message = ::dlerror();
    problem = message == nullptr ? "cannot be loaded" : message;
    return "";
  }
  using GetVersion = int (*)(int*);
  const auto get = reinterpret_cast<GetVersion>(::dlsym(library.get(), "ncclGetVersion"));
  int code = 0;
  if (get == nullptr || get(&code) != 0) return "of unknown version";
  // NCCL_VERSION of nccl.h: major * 10000 + minor * 100 + patch since 2.9, before it * 1000.
  constexpr int kNewScheme = 10'000;
  const int major = code >= kNewScheme ? code / kNewScheme : code / 1000;
  const int rest = code >= kNewScheme ? code % kNewScheme : code % 1000;
  return fmt::format("{}.{}.{}", major, rest / 100, rest % 100);
}

/// What is to be said of the interfaces that a job over NCCL with the plugin would use, with the
/// variables that are set.
void addNetwork(std::vector<MachineCheck>& checks) {
  constexpr const char* kNeeded = "rails that fail one by one (docs/nccl.md)";
  const auto add = [&](std::string name, bool ok, std::string found, std::string cost,
                       std::string remedy) {
    checks.push_back({labGroup(), std::move(name), ok, false, std::move(found), kNeeded,
                      std::move(cost), std::move(remedy)});
  };
  const std::string cannot = "the plugin does not begin";
  const auto options = nccl::Options::readProcess();
  const auto network = fabric::readNetwork();
  if (!options.ok() || !network.ok()) {
    const Status why = options.ok() ? network.status() : options.status();
    return add("rails", false, why.message(), cannot, "see what was found");
  }
  const std::vector<nccl::Interface> interfaces = nccl::interfacesOf(*network);
  const auto rails = nccl::chooseRails(interfaces, options->nics, options->socketInterfaces);
  if (!rails.ok()) {
    return add("rails", false, rails.status().message(), cannot, "see what was found");
  }
  const auto management =
      nccl::chooseManagement(interfaces, options->management, options->socketInterfaces, *rails);
  if (!management.ok()) {
    return add("rails", false, management.status().message(), cannot, "see what was found");
  }
  std::vector<std::string> names;
  for (const nccl::Interface& rail : *rails) {
    names.push_back(fmt::format("{} ({})", rail.name, transport::tcp::formatAddress(rail.address)));
  }
  add("rails", true, joined(names), "", "");
  for (fabric::NetworkFinding& finding : nccl::networkFindings(*network, *rails, *management)) {
    add(finding.subject, false, std::move(finding.cause),
        finding.refused ? cannot + ": " + finding.cost : std::move(finding.cost),
        std::move(finding.cure));
  }
}

void addLab(std::vector<MachineCheck>& checks) {
  const auto add = [&](const char* name, const std::string& found, const std::string& missing,
                       const char* needed_for, const char* cost, const char* remedy) {
    checks.push_back({labGroup(), name, !found.empty(), false, found.empty() ? missing : found,
                      needed_for, cost, remedy});
  };
  add("RDMA devices", joined(entriesOf("/sys/class/infiniband")), "none in /sys/class/infiniband",
      "inject rdma_* by hand, faults of queue pairs of real programs; RDMA rails on real NICs "
      "(planned)",
      "such faults only in guests of the laboratory; rails are TCP over veth pairs",
      "use a machine with RDMA NICs and their driver, or load rdma_rxe");
  add("GPUs", joined(entriesOf("/proc/driver/nvidia/gpus")), "none in /proc/driver/nvidia/gpus",
      "scenarios/gpu: NCCL and PyTorch under faults (docs/gpu.md)",
      "gradients are in host memory, compute is a timed wait",
      "use a machine with GPUs and the NVIDIA driver");
  std::string problem;
  const std::string nccl = ncclVersion(problem);
  add("NCCL", nccl, problem, "scenarios/gpu: stock NCCL, and NCCL with the plugin, under faults",
      "baselines are those that this program has itself",
      "install libnccl2; PyTorch brings an NCCL of its own, which is not looked for");
  add("NCCL plugin", launch::findOwnLibrary(kPlugin, kPluginFolder),
      fmt::format("{} is not built", kPlugin),
      "jobs over NCCL that outlive their NICs (docs/nccl.md)",
      "NCCL (seen with 2.27 to 2.30, over sockets) hangs, or ends the job, when a NIC fails",
      "install libssl-dev, configure, and cmake --build build --target faultline_nccl");
  add("nccl_bench", launch::findOwnLibrary(kNcclBench, ""), "not built",
      "scenarios/gpu, all but PyTorch's: collectives of NCCL, each element compared (docs/gpu.md)",
      "of scenarios/gpu only those of PyTorch can be run",
      "install CUDA and libnccl-dev, or set NCCL_ROOT; configure and build again");
  const BootstrapFinding bootstrap = findBootstrap();
  add("NCCL's bootstrap", bootstrap.ok ? bootstrap.found : "", bootstrap.found,
      "NCCL with the plugin: making communicators while a rail is down",
      "ranks find each other over a NIC whose faults the job is to survive",
      "name the rails in FAULTLINE_NICS, another interface in NCCL_SOCKET_IFNAME (and in "
      "FAULTLINE_MANAGEMENT, if that is set), and leave NCCL_OOB_NET_ENABLE off");
  const auto options = nccl::Options::readProcess();
  const Status files = options.ok() ? nccl::checkFiles(*options) : options.status();
  add("NCCL plugin files", files.ok() ? "can be written, or there are none" : "", files.message(),
      "FAULTLINE_COUNTERS and FAULTLINE_TRACE: what a job did about its NICs",
      "the plugin does not begin", "name files in folders that are there on each node, or none");
  addNetwork(checks);
}

/// Whether users can have faults of this host's interfaces.
void addFaultService(std::vector<MachineCheck>& checks) {
  constexpr Duration kPatience = 2s;
  const std::string socket(wire::kServiceSocket);
  const auto facts = faultd::askService(socket, {}, kPatience);
  std::string trouble = facts.ok() ? facts->whyNoPolicy + facts->whyNot : facts.status().message();
  const bool ok = facts.ok() && trouble.empty();
  checks.push_back({"faults on this host's own interfaces", "fault service", ok, false,
                    ok ? fmt::format("faultline {}: {}", facts->program, facts->policy->words)
                       : std::move(trouble),
                    "runs of hosts with faults, without root (docs/safety.md)",
                    "only root strikes, by hand, and nobody undoes what killed processes leave",
                    "ask your administrators for it: docs/administrators.md"});
}

}  // namespace

std::vector<MachineCheck> checkMachine() {
  const std::span<const site::Kind* const> kinds = site::kinds();
  // The quick start's kind first.
  std::vector<MachineCheck> checks = kinds.front()->checkMachine();
  addMachine(checks);
  for (const site::Kind* const kind : kinds.subspan(1)) {
    std::vector<MachineCheck> more = kind->checkMachine();
    std::ranges::move(more, std::back_inserter(checks));
  }
  addLab(checks);
  addFaultService(checks);
  return checks;
}

bool canRunQuickstart(const std::vector<MachineCheck>& checks) {
  return std::all_of(checks.begin(), checks.end(),
                     [](const MachineCheck& check) { return check.ok || !check.required; });
}

}  // namespace faultline::cli
