#include "tests/netns/fabric/job.h"

#include <algorithm>
#include <array>

#include "harness/site/netns/cluster_plan.h"
#include "injector/netlink/namespace.h"
#include "resilient_ccl/fabric/host_identity.h"
#include "tests/support/poll_until.h"

namespace faultline::test {
namespace {

constexpr Duration kConnectTime = 20s;
// Each job of a test has a rendezvous of its own.
constexpr std::uint16_t kFirstPort = 20'000;
std::uint16_t nextPort() {
  static std::atomic<std::uint16_t> next{kFirstPort};
  return next.fetch_add(1);
}

// Small integers, so that every order of adding gives the same sum; different in every iteration,
// so that a chunk of an earlier one is seen.
std::int32_t contribution(int rank, std::int64_t iteration, std::int64_t index) {
  return static_cast<std::int32_t>((index * 31 + iteration * 1009 + rank * 7) & 0xfffff);
}

}  // namespace

Job::Job(netns::Cluster& cluster, std::int64_t elements, const JobOptions& options)
    : cluster_(cluster), elements_(elements), options_(options), port_(nextPort()) {
  for (int rank = 0; rank < cluster.spec().nodes * options.ranksPerNode; ++rank) {
    ranks_.push_back(std::make_unique<Rank>());
  }
  for (int rank = 0; rank < size(); ++rank) {
    ranks_[rank]->thread = std::thread([this, rank] { run(rank); });
  }
}

Job::~Job() {
  stopping_ = true;
  for (const auto& rank : ranks_) {
    if (rank->thread.joinable()) rank->thread.join();
  }
}

void Job::problem(int rank, const Status& status) {
  const std::lock_guard lock(mutex_);
  problems_.push_back(fmt::format("rank {}: {}", rank, status.toString()));
}

void Job::run(int rank) {
  Rank& self = *ranks_[rank];
  const int node = rank / options_.ranksPerNode;
  auto inside = netlink::ScopedNamespace::enter(cluster_.nodeNamespace(node));
  if (!inside.ok()) return problem(rank, inside.status());
  const auto address = [](const std::string& text) {
    return transport::tcp::parseAddress(text).value();
  };
  comm::CommunicatorOptions options;
  options.rank = rank;
  options.size = size();
  options.rendezvous = {address(netns::managementAddress(0)), port_};
  options.setupTimeout = kConnectTime;
  options.algorithm = options_.algorithm;
  options.bandwidths = options_.bandwidths;
  options.railGrace = options_.railGrace;
  options.fabric.link.giveUp = options_.giveUp;
  options.fabric.jobKey = jobKey_;
  options.fabric.managementAddress = address(netns::managementAddress(node));
  options.fabric.host = fabric::hostIdentity();
  options.fabric.controlTos = cluster_.controlTos();
  options.fabric.ioThreads = options_.ioThreads;
  options.fabric.link.policy =
      options_.policy == "pull" ? channel::Policy::kPull : channel::Policy::kPinned;
  for (int rail = 0; rail < cluster_.spec().rails; ++rail) {
    options.fabric.nics.push_back({netns::railName(rail), address(netns::railAddress(node, rail))});
  }
  auto comm = comm::Communicator::create(options);
  if (!comm.ok()) {
    problem(rank, comm.status());
    self.ended = true;
    return;
  }
  self.comm = std::move(*comm);
  while (static_cast<int>(self.others.size()) + 1 < options_.communicators) {
    auto other = self.comm->split(0, 0);
    if (!other.ok()) {
      problem(rank, other.status());
      self.ended = true;
      return;
    }
    self.others.push_back(std::move(*other));
  }
  self.connected = true;
  reduceUntilStopped(rank);
  self.ended = true;
}

comm::Communicator& Job::communicatorOf(Rank& rank, std::int64_t iteration) const {
  const std::int64_t turn = iteration % options_.communicators;
  return turn == 0 ? *rank.comm : *rank.others[turn - 1];
}

void Job::reduceUntilStopped(int rank) {
  Rank& self = *ranks_[rank];
  // One reduction is under way while the other is checked: the network is never idle.
  std::array<std::vector<std::int32_t>, 2> buffers;
  for (auto& buffer : buffers) buffer.resize(elements_);
  const auto submit = [&](std::int64_t iteration) {
    auto& data = buffers[iteration % 2];
    for (std::int64_t i = 1; i < elements_; ++i) data[i] = contribution(rank, iteration, i);
    data[0] = rank == 0 && stopping_ ? 1 : 0;  // all ranks read the same sum
    return communicatorOf(self, iteration)
        .allReduce(data.data(), data.data(), elements_, reduction::DataType::kI32,
                   reduction::ReduceOp::kSum);
  };
  auto work = submit(0);
  for (std::int64_t iteration = 0, last = -1; iteration != last + 1 || last < 0; ++iteration) {
    std::shared_ptr<comm::Work> next;
    if (last < 0) next = submit(iteration + 1);
    if (const Status status = work->wait(); !status.ok()) return problem(rank, status);
    const auto& data = buffers[iteration % 2];
    std::int64_t wrong = 0;
    for (std::int64_t i = 1; i < elements_; ++i) {
      std::int32_t expected = 0;
      for (int other = 0; other < size(); ++other) expected += contribution(other, iteration, i);
      wrong += data[i] != expected;
    }
    self.wrong += wrong;
    self.checked += elements_ - 1;
    ++self.iterations;
    if (data[0] != 0 && last < 0) last = iteration + 1;
    work = std::move(next);
  }
  const TimePoint leaves = now();
  if (const Status status = self.comm->finish(); !status.ok()) problem(rank, status);
  const Duration budget = comm::CommunicatorOptions{}.setupTimeout;
  if (now() - leaves > budget / 2) {
    problem(rank, errorf(Code::kInternal, "the goodbye took {} of the {} that it may take at most",
                         formatDuration(now() - leaves), formatDuration(budget)));
  }
}

bool Job::awaitConnected() {
  const bool connected = pollUntil(kConnectTime, [&] {
    return std::ranges::all_of(ranks_, [](const auto& rank) { return rank->connected.load(); });
  });
  return connected && pollUntil(kConnectTime, [&] { return iterations() >= 3; });
}

std::int64_t Job::iterations() const {
  std::int64_t least = ranks_[0]->iterations;
  for (const auto& rank : ranks_) least = std::min<std::int64_t>(least, rank->iterations);
  return least;
}

void Job::stop() {
  stopping_ = true;
  for (const auto& rank : ranks_) rank->thread.join();
}

comm::CommunicatorEvents Job::events(int rank) const {
  if (!ranks_[rank]->connected) return {};
  return ranks_[rank]->comm->events();
}

std::int64_t Job::wrongElements() const {
  std::int64_t sum = 0;
  for (const auto& rank : ranks_) sum += rank->wrong;
  return sum;
}

std::int64_t Job::checkedElements() const {
  std::int64_t sum = 0;
  for (const auto& rank : ranks_) sum += rank->checked;
  return sum;
}

std::vector<std::string> Job::problems() const {
  const std::lock_guard lock(mutex_);
  return problems_;
}

}  // namespace faultline::test
