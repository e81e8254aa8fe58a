#include "harness/command/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/parameter.h"
#include "base/text.h"

namespace faultline::command {
namespace {

constexpr const char* kPrefix = "FAULTLINE_";
// As torchrun's own default.
constexpr const char* kMasterPort = "29500";
constexpr const char* kVerbsShim = "verbs_shim";

struct Source {
  const Place& place;
  const NetworkNames& network;
};

/// One variable; `standard` is what other launchers call it.
struct Row {
  std::string_view name;
  std::string_view standard;
  std::string_view meaning;
  std::string (*value)(const Source&);
};

std::string text(int number) { return fmt::format("{}", number); }

std::string joined(const std::vector<std::string>& words) {
  return join(std::vector<std::string_view>(words.begin(), words.end()), ",");
}

constexpr std::array kRows{
    Row{"rank", "RANK", "number of the process, from 0",
        [](const Source& s) { return text(s.place.rank); }},
    Row{"ranks", "WORLD_SIZE", "processes in all",
        [](const Source& s) { return text(s.place.ranks()); }},
    Row{"local_rank", "LOCAL_RANK", "number of the process on its node",
        [](const Source& s) { return text(s.place.localRank); }},
    Row{"local_ranks", "LOCAL_WORLD_SIZE", "processes on each node that runs it",
        [](const Source& s) { return text(s.place.perNode); }},
    Row{"node", "", "the process's node", [](const Source& s) { return text(s.place.node); }},
    Row{"nodes", "", "nodes of the cluster",
        [](const Source& s) { return text(static_cast<int>(s.network.management.size())); }},
    Row{"group_rank", "GROUP_RANK",
        "number of the node among those that run it, as torchrun's --node-rank",
        [](const Source& s) { return text(s.place.rank / s.place.perNode); }},
    Row{"groups", "", "nodes that run it, as torchrun's --nnodes",
        [](const Source& s) { return text(static_cast<int>(s.place.nodes.size())); }},
    Row{"rails", "", "NICs of each node",
        [](const Source& s) {
          return text(static_cast<int>(s.network.rails[s.place.node].size()));
        }},
    Row{"master_address", "MASTER_ADDR", "management address of the first node that runs it",
        [](const Source& s) { return s.network.management[s.place.nodes.front()]; }},
    Row{"master_port", "MASTER_PORT", "a port there that nobody of ours uses",
        [](const Source&) { return std::string(kMasterPort); }},
    Row{"address", "", "the node's address on the management network",
        [](const Source& s) { return s.network.management[s.place.node]; }},
    Row{"addresses", "", "those of all nodes, with commas between",
        [](const Source& s) { return joined(s.network.management); }},
    Row{"interface", "", "the node's interface to the management network",
        [](const Source& s) { return s.network.managementInterfaces[s.place.node]; }},
    Row{"interfaces", "", "those of its rails, with commas between",
        [](const Source& s) { return joined(s.network.railInterfaces[s.place.node]); }},
    Row{"output", "", "folder of the process, for files",
        [](const Source& s) { return s.place.output; }},
    Row{"progress", "", "the process's file of 'progress', if there is to be one",
        [](const Source& s) { return s.place.progress; }},
    Row{"strategy", "", "name of the row of the report",
        [](const Source& s) { return s.place.strategy; }},
    Row{"block", "", "number of the block, from 0",
        [](const Source& s) { return text(s.place.block); }},
    Row{"seed", "", "the scenario's seed",
        [](const Source& s) { return fmt::format("{}", s.place.seed); }},
    Row{kVerbsShim, "",
        "path of libfaultline-verbs.so, for LD_PRELOAD and the like; a mistake where it was not "
        "built",
        [](const Source& s) { return s.place.verbsShim; }},
};

std::string addressName(int node) { return fmt::format("address_{}", node); }
std::string railAddressName(int rail, int node) {
  return fmt::format("rail_{}_address_{}", rail, node);
}

bool isWord(std::string_view text) {
  const auto small = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && small(text.front()) && std::ranges::all_of(text, [&](char c) {
    return small(c) || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

std::map<std::string, std::string> variablesOf(const Place& place, const NetworkNames& network) {
  std::map<std::string, std::string> values;
  for (const Row& row : kRows) values[std::string(row.name)] = row.value({place, network});
  for (int node = 0; node < std::ssize(network.management); ++node) {
    values[addressName(node)] = network.management[node];
    for (int rail = 0; rail < std::ssize(network.rails[node]); ++rail) {
      values[railAddressName(rail, node)] = network.rails[node][rail];
    }
  }
  return values;
}

std::vector<std::string> variableNames(int nodes, int rails) {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  for (int node = 0; node < nodes; ++node) {
    names.push_back(addressName(node));
    for (int rail = 0; rail < rails; ++rail) names.push_back(railAddressName(rail, node));
  }
  return names;
}

std::string rankEntry(int rank) { return fmt::format("{}={}", kRankVariable, rank); }

std::map<std::string, std::string> environmentOf(
    const std::map<std::string, std::string>& variables) {
  std::map<std::string, std::string> environment;
  for (const auto& [name, value] : variables) {
    std::string upper = kPrefix + name;
    std::ranges::transform(upper, upper.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
    environment[upper] = value;
  }
  for (const Row& row : kRows) {
    if (!row.standard.empty()) {
      environment[std::string(row.standard)] = variables.at(std::string(row.name));
    }
  }
  return environment;
}

Result<std::string> expand(std::string_view text,
                           const std::map<std::string, std::string>& variables) {
  std::string result;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    result += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const bool ofShell = open > 0 && text[open - 1] == '$';
    text.remove_prefix(open);
    const bool twice = text.starts_with("{{");
    const std::size_t begin = twice ? 2 : 1;
    const std::size_t close = text.find('}');
    const std::string_view name =
        close == std::string_view::npos ? "" : text.substr(begin, close - begin);
    if (!isWord(name) || (twice ? text.substr(close, 2) != "}}" : ofShell)) {
      result += '{';
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(close + begin);
    if (twice) {
      result += fmt::format("{{{}}}", name);
      continue;
    }
    const auto found = variables.find(std::string(name));
    if (found == variables.end()) {
      std::vector<std::string_view> known;
      for (const auto& [variable, value] : variables) known.push_back(variable);
      return errorf(Code::kInvalidArgument,
                    "there is no placeholder '{{{0}}}'{1}; where it is meant as it stands, write "
                    "'{{{{{0}}}}}'",
                    name, suggestion(name, known));
    }
    if (name == kVerbsShim && found->second.empty()) {
      return errorf(Code::kUnavailable,
                    "'{{{}}}': libfaultline-verbs.so is not there, neither in the build of this "
                    "program nor in ../lib beside it; install libibverbs-dev and build again",
                    name);
    }
    result += found->second;
  }
  return result;
}

std::string describeVariables() {
  constexpr std::size_t kColumns = 24;
  std::string page;
  for (const Row& row : kRows) {
    const std::string also = row.standard.empty() ? "" : fmt::format("; also ${}", row.standard);
    page += describeRow(row.name, fmt::format("{}{}", row.meaning, also), kColumns);
  }
  page += describeRow("address_<n>", "management address of node n", kColumns);
  page += describeRow("rail_<r>_address_<n>", "address of node n on rail r", kColumns);
  return page;
}

}  // namespace faultline::command
