#include "resilient_ccl/nccl/counters.h"

#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "resilient_ccl/nccl/nic_path.h"

namespace faultline::nccl {

std::string filePath(const std::string& pattern) {
  std::array<char, 64> host{};
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

std::string countersJson(const Options& options, const std::vector<Device>& devices,
                         const std::vector<Pair::Account>& accounts) {
  using nlohmann::json;
  json rails = json::array();
  const std::vector<std::vector<int>> partners = partnersOf(devices);
  for (std::size_t rail = 0; rail < devices.size(); ++rail) {
    const Device& device = devices[rail];
    json takeOver = json::array();
    for (const int partner : partners[rail]) {
      takeOver.push_back(
          {{"rail", partner}, {"path", nameOf(pathBetween(device, devices[partner]))}});
    }
    rails.push_back({{"name", device.interface.name},
                     {"numa_node", device.numaNode},
                     {"partners", takeOver},
                     {"pci_path", device.pciPath},
                     {"speed_mbit", device.speed}});
  }
  json peers = json::array();
  for (const Pair::Account& account : accounts) {
    const fabric::FabricCounters& counters = account.counters;
    peers.push_back({{"peer", account.peer},
                     {"bytes_sent", account.sent},
                     {"bytes_received", account.received},
                     {"bytes_sent_by_rail", account.sentByRail},
                     {"failovers", account.failovers},
                     {"failbacks", account.failbacks},
                     {"degradations", account.degradations},
                     {"longest_pause_ms", toSeconds(account.longestPause) * 1e3},
                     {"chunks_sent", counters.chunksSent},
                     {"bytes_resent", counters.bytesResent},
                     {"bytes_copied", counters.bytesCopied},
                     {"datagrams_sent", counters.datagramsSent},
                     {"failure", account.failure}});
  }
  return json{{"schema", "faultline-nccl/1"},
              {"process", getpid()},
              {"options", options.describe()},
              {"rails", rails},
              {"peers", peers}}
             .dump(2) +
         "\n";
}

}  // namespace faultline::nccl
