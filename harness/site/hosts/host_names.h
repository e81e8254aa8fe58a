#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "harness/site/cluster.h"
#include "harness/site/kind.h"
#include "wire/agent.h"

/// Where the names of hosts come from that a scenario does not name itself.
namespace faultline::hosts {

// Keys of `cluster`.
inline constexpr std::string_view kHosts = "hosts";
inline constexpr std::string_view kJob = "job";

/// The value of a variable of the environment; empty: it is not set.
using Environment = std::function<std::string(const char* name)>;

/// The names in a file as MPI has it: one on each line, what follows is "slots=4" and the like, and
/// "#" begins a comment. A name that comes again is the same host. `path` is for messages.
Result<std::vector<std::string>> parseHostfile(std::string_view text, const std::string& path);

/// The hosts of the allocation in which this process runs. kNotFound where there is none.
Result<std::vector<std::string>> hostsOfAllocation(const Environment& environment);

/// What `squeue -h -o "%T %N"` prints of a job, as the names of its hosts.
Result<std::vector<std::string>> hostsOfJob(const std::string& job, std::string_view printed);

/// Puts the names in place of a file's, of a job, or of nothing (site::Kind::complete).
site::Refusal findHosts(site::ClusterSpec& spec);

/// Whether somebody on another machine has reached the host at HostFacts::reachedAt: an interface
/// of it has that address, which is none of loopback. Pure.
bool isReachedFromOutside(const wire::HostFacts& facts);

/// Of a host of which that is not so: sets it to the one of these addresses of its name of which it
/// would be. Pure.
void findReachedAt(const std::vector<std::string>& addresses, wire::HostFacts& facts);

/// What a word in place of a cluster file means: a launcher, with the hosts of the allocation, or
/// with hosts behind a colon, "ssh:n[1-4]"; the YAML of a cluster. Empty: it is no such word.
Result<std::string> sectionOf(std::string_view word);

}  // namespace faultline::hosts
