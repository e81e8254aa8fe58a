#include "resilient_ccl/schedule/fluid_ports.h"

#include <algorithm>
#include <limits>

namespace faultline::schedule {
namespace {

/// Rounding of sums of rates and times: ends closer together than this (relative) are one instant.
constexpr double kSameInstant = 1e-12;

}  // namespace

FluidPorts::FluidPorts(const PortBandwidths& bandwidths, const std::vector<double>& links) {
  for (std::size_t rank = 0; rank < bandwidths.size(); ++rank) {
    ports_.push_back({.capacity = bandwidths.send[rank], .flows = {}});
    ports_.push_back({.capacity = bandwidths.receive[rank], .flows = {}});
  }
  firstLink_ = static_cast<int>(ports_.size());
  for (const double bandwidth : links) ports_.push_back({.capacity = bandwidth, .flows = {}});
}

void FluidPorts::markDirty(int portIndex) {
  if (port(portIndex).dirty) return;
  port(portIndex).dirty = true;
  dirtyPorts_.push_back(portIndex);
}

void FluidPorts::add(const Transfer& transfer, double time) {
  if (time > now_) refill();
  now_ = std::max(now_, time);
  const auto [queue, isFree] = queued_.try_emplace(transfer.stream);
  if (isFree) {
    start(transfer);
  } else {
    queue->second.push_back(transfer);
  }
}

void FluidPorts::start(const Transfer& transfer) {
  if (freeFlows_.empty()) {
    freeFlows_.push_back(static_cast<int>(flows_.size()));
    flows_.emplace_back();
  }
  const int index = freeFlows_.back();
  freeFlows_.pop_back();
  Flow& added = flow(index);
  added.id = transfer.id;
  added.stream = transfer.stream;
  added.ports = {2 * transfer.from, 2 * transfer.to + 1, firstLink_ + transfer.link};
  added.portCount = transfer.link < 0 ? 2 : 3;
  // The overhead as data, so that it too is shared; alone on its ports it takes its time.
  double alone = std::numeric_limits<double>::infinity();
  for (const int end : portsOf(index)) alone = std::min(alone, port(end).capacity);
  added.left = transfer.size + transfer.overhead * alone;
  added.rate = 0;
  added.since = now_;
  for (const int end : portsOf(index)) {
    port(end).flows.push_back(index);
    markDirty(end);
  }
}

void FluidPorts::refill() {
  for (std::size_t i = 0; i < dirtyPorts_.size(); ++i) {
    if (port(dirtyPorts_[i]).dirty) fillComponent(dirtyPorts_[i]);
  }
  dirtyPorts_.clear();
}

void FluidPorts::fillComponent(int firstPort) {
  component_.assign(1, firstPort);
  port(firstPort).visited = true;
  for (std::size_t i = 0; i < component_.size(); ++i) {
    for (const int index : port(component_[i]).flows) {
      flow(index).settled = false;
      for (const int end : portsOf(index)) {
        if (port(end).visited) continue;
        port(end).visited = true;
        component_.push_back(end);
      }
    }
  }
  // Progressive filling: all rates grow together; flows through a port that is full stop growing. A
  // port is full at a level that only rises as flows that stopped before leave it more than their
  // share, so the lowest known level has to be looked at again, no other.
  fullAt_.clear();
  for (const int index : component_) {
    Port& member = port(index);
    member.dirty = member.visited = false;
    member.room = member.capacity;
    member.unsettled = static_cast<int>(member.flows.size());
    if (member.unsettled > 0) fullAt_.push_back({member.level(), index});
  }
  std::make_heap(fullAt_.begin(), fullAt_.end(), std::greater<>());
  double level = 0;
  while (!fullAt_.empty()) {
    std::pop_heap(fullAt_.begin(), fullAt_.end(), std::greater<>());
    const auto [known, index] = fullAt_.back();
    fullAt_.pop_back();
    Port& full = port(index);
    if (full.unsettled == 0) continue;
    if (full.level() > known) {
      fullAt_.push_back({full.level(), index});
      std::push_heap(fullAt_.begin(), fullAt_.end(), std::greater<>());
      continue;
    }
    level = std::max(level, known);  // rounding must not take it below
    for (const int member : full.flows) {
      if (flow(member).settled) continue;
      flow(member).settled = true;
      for (const int end : portsOf(member)) {
        port(end).room -= level;
        --port(end).unsettled;
      }
      setRate(member, level);
    }
  }
}

void FluidPorts::setRate(int flowIndex, double rate) {
  Flow& changed = flow(flowIndex);
  if (changed.rate == rate) return;  // ends when it was to end
  changed.left = std::max(0.0, changed.left - changed.rate * (now_ - changed.since));
  changed.since = now_;
  changed.rate = rate;
  ends_.set(flowIndex, now_ + changed.left / rate);
}

std::optional<double> FluidPorts::nextTime() {
  refill();
  if (ends_.empty()) return std::nullopt;
  return ends_.time();
}

std::vector<PortSimulator::Finished> FluidPorts::takeNext() {
  std::vector<Finished> finished;
  std::vector<std::int64_t> streams;
  const std::optional<double> time = nextTime();
  if (!time) return finished;
  now_ = *time;
  while (!ends_.empty() && ends_.time() <= *time * (1 + kSameInstant)) {
    const int index = ends_.flow();
    ends_.remove(index);
    Flow& done = flow(index);
    for (const int end : portsOf(index)) {
      std::erase(port(end).flows, index);
      markDirty(end);
    }
    freeFlows_.push_back(index);
    finished.push_back({done.id, *time});
    streams.push_back(done.stream);
  }
  for (const std::int64_t stream : streams) {
    const auto queue = queued_.find(stream);
    if (queue->second.empty()) {
      queued_.erase(queue);
    } else {
      start(queue->second.front());
      queue->second.erase(queue->second.begin());
    }
  }
  return finished;
}

}  // namespace faultline::schedule
