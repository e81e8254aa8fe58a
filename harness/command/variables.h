#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

/// What every process of a command is told of itself and of its network: as variables of its
/// environment, and as placeholders.
namespace faultline::command {

/// How the nodes of a cluster find each other.
struct NetworkNames {
  std::vector<std::string> management;                   ///< address, by node
  std::vector<std::vector<std::string>> rails;           ///< address, by node and rail
  std::vector<std::string> managementInterfaces;         ///< by node
  std::vector<std::vector<std::string>> railInterfaces;  ///< by node and rail
};

/// One process, and the job that it is a part of.
struct Place {
  int rank = 0;
  int node = 0;
  int localRank = 0;
  std::vector<int> nodes;  ///< that run the command
  int perNode = 1;
  std::string output;    ///< its folder
  std::string progress;  ///< its file; empty: none was asked for
  std::string strategy;  ///< name of the row
  int block = 0;
  std::uint64_t seed = 0;
  std::string verbsShim{};  ///< its path; empty: it is not there

  int ranks() const { return perNode * static_cast<int>(nodes.size()); }
};

/// Variables by their names as placeholders: "rank", "address_1", ...
std::map<std::string, std::string> variablesOf(const Place& place, const NetworkNames& network);

/// The names of these variables on a cluster of that shape.
std::vector<std::string> variableNames(int nodes, int rails);

/// The variable with a process's rank; the bench's own ranks have it as well. What it starts
/// inherits it, by which faults find the processes of a rank.
inline constexpr const char* kRankVariable = "FAULTLINE_RANK";
/// The entry of the environment that only processes of this rank have: "FAULTLINE_RANK=3".
std::string rankEntry(int rank);

/// The environment that says it all: FAULTLINE_RANK and so on, and the names that programs made for
/// torchrun and the like know (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT).
std::map<std::string, std::string> environmentOf(
    const std::map<std::string, std::string>& variables);

/// The text with `{rank}` and the like replaced. Left alone are `${rank}`, which is a variable of a
/// shell, and braces around anything but a small letter, small letters, digits and '_';
/// `{{rank}}` is `{rank}` as it stands. An unknown name is kInvalidArgument.
Result<std::string> expand(std::string_view text,
                           const std::map<std::string, std::string>& variables);

/// The table of variables for people.
std::string describeVariables();

}  // namespace faultline::command
