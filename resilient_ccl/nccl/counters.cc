#include "resilient_ccl/nccl/counters.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/atomic_file.h"
#include "resilient_ccl/nccl/nic_path.h"

namespace faultline::nccl {

std::string filePath(const std::string& pattern) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  (void)gethostname(host.data(), host.size() - 1);
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (pattern[i] != '%' || (next != 'h' && next != 'p')) {
      path += pattern[i];
      continue;
    }
    path += next == 'h' ? host.data() : std::to_string(getpid());
    ++i;
  }
  return path;
}

Status checkFile(const char* variable, const std::string& path) {
  if (path.empty()) return okStatus();
  const Status status = faultline::checkFile(path);
  if (status.ok()) return status;
  return errorf(Code::kInvalidArgument,
                "{}={} cannot be written: {}; a file in a folder that is there on each node is "
                "expected, or none",
                variable, path, status.message());
}

Status checkFiles(const Options& options) {
  RETURN_IF_ERROR(checkFile("FAULTLINE_COUNTERS", filePath(options.counters)));
  return checkFile("FAULTLINE_TRACE", filePath(options.trace));
}

namespace {

/// The share of each rail in what was sent.
std::vector<double> weightsOf(const std::vector<Bytes>& sentByRail) {
  const auto all =
      static_cast<double>(std::accumulate(sentByRail.begin(), sentByRail.end(), Bytes{0}));
  std::vector<double> weights;
  for (const Bytes sent : sentByRail) {
    weights.push_back(all > 0 ? static_cast<double>(sent) / all : 0);
  }
  return weights;
}

/// What the interface of a rail was called last, as far as a pair has seen it.
std::string latestName(const Counters& its, std::size_t rail) {
  const std::string& first = its.devices[rail].interface.name;
  for (auto account = its.accounts.latest.rbegin(); account != its.accounts.latest.rend();
       ++account) {
    if (!account->failure.empty() || rail >= account->devices.size()) continue;
    return account->devices[rail].empty() ? first : account->devices[rail];
  }
  return first;
}

}  // namespace

std::string countersJson(const Counters& its) {
  using nlohmann::json;
  json rails = json::array();
  const std::vector<std::vector<int>> partners = partnersOf(its.devices);
  for (std::size_t rail = 0; rail < its.devices.size(); ++rail) {
    const Device& device = its.devices[rail];
    json takeOver = json::array();
    for (const int partner : partners[rail]) {
      takeOver.push_back(
          {{"rail", partner}, {"path", nameOf(pathBetween(device, its.devices[partner]))}});
    }
    rails.push_back({{"name", latestName(its, rail)},
                     {"name_at_start", device.interface.name},
                     {"numa_node", device.numaNode},
                     {"partners", takeOver},
                     {"pci_path", device.pciPath},
                     {"speed_mbit", device.speed}});
  }
  json peers = json::array();
  for (const Pair::Account& account : its.accounts.latest) {
    const fabric::FabricCounters& counters = account.counters;
    peers.push_back({{"peer", account.peer},
                     {"bytes_sent", account.sent},
                     {"bytes_received", account.received},
                     {"bytes_sent_by_rail", account.sentByRail},
                     {"weight_by_rail", weightsOf(account.sentByRail)},
                     {"failovers", account.failovers},
                     {"failbacks", account.failbacks},
                     {"degradations", account.degradations},
                     {"longest_pause_ms", toSeconds(account.longestPause) * 1e3},
                     {"paused_ms", toSeconds(account.paused) * 1e3},
                     {"chunks_sent", counters.chunksSent},
                     {"bytes_resent", counters.bytesResent},
                     {"bytes_copied", counters.bytesCopied},
                     {"datagrams_sent", counters.datagramsSent},
                     {"datagrams_rejected", counters.datagramsRejected},
                     {"connections_rejected", counters.connectionsRejected},
                     {"messages_eager", account.eager},
                     {"failure", account.failure}});
  }
  const json all{{"schema", "faultline-nccl/1"},
                 {"process", getpid()},
                 {"options", its.options},
                 {"io_threads", its.ioThreads},
                 {"rails", rails},
                 {"peers", peers},
                 {"peers_dropped", its.accounts.dropped},
                 {"callers_refused", its.accounts.callersRefused},
                 {"answers_refused", its.accounts.answersRefused}};
  // What a host or a file is called need not be UTF-8.
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace faultline::nccl
