#include "harness/site/hosts/connector.h"

#include <poll.h>

#include <optional>
#include <utility>

#include "base/units.h"

namespace faultline::hosts {

Connector::Connector(const HostsSpec& spec, std::string ownProgram)
    : spec_(spec), program_(std::move(ownProgram)) {}

Connector::~Connector() {
  for (auto& [host, coming] : coming_) coming.connection.kill();
}

void Connector::begin(std::vector<Arrived>& arrived) {
  while (next_ < spec_.names.size() && coming_.size() < std::size_t{kMostAtOnce}) {
    const int host = static_cast<int>(next_);
    const std::string& name = spec_.names[next_++];
    Result<Connection> connection =
        Connection::start(*spec_.launcher, name, agentCommand(spec_, name, program_));
    if (!connection.ok()) {
      arrived.push_back({host, connection.status()});
    } else {
      coming_.emplace(host, Coming{*std::move(connection), now() + spec_.launcher->patience});
    }
  }
}

std::vector<Connector::Arrived> Connector::step(Duration timeout) {
  std::vector<Arrived> arrived;
  begin(arrived);
  std::vector<pollfd> waiting;
  for (const auto& [host, coming] : coming_) waiting.push_back({coming.connection.fd(), POLLIN, 0});
  const Duration pause = arrived.empty() ? timeout : Duration::zero();
  if (::poll(waiting.data(), waiting.size(), static_cast<int>(toMilliseconds(pause))) < 0) {
    for (pollfd& one : waiting) one.revents = 0;
  }
  auto ready = waiting.begin();
  for (auto at = coming_.begin(); at != coming_.end();) {
    const auto current = at++;
    auto& [host, coming] = *current;
    const bool heard = (ready++)->revents != 0;
    std::optional<Status> greeted;
    if (heard) greeted = coming.connection.greeted();
    if (!greeted && now() >= coming.deadline) {
      greeted = errorf(Code::kDeadlineExceeded, "host {}: its agent has not come within {}",
                       spec_.names[static_cast<std::size_t>(host)],
                       formatDuration(spec_.launcher->patience));
    }
    if (!greeted) continue;
    if (greeted->ok()) {
      arrived.push_back({host, std::move(coming.connection)});
    } else {
      coming.connection.kill();
      arrived.push_back({host, *greeted});
    }
    coming_.erase(current);
  }
  return arrived;
}

}  // namespace faultline::hosts
