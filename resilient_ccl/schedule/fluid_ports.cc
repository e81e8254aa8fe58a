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
  added.alive = true;
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
  std::vector<int> component{firstPort};
  std::vector<int> growing;
  port(firstPort).visited = true;
  for (std::size_t i = 0; i < component.size(); ++i) {
    for (const int index : port(component[i]).flows) {
      if (component[i] == flow(index).ports[0]) growing.push_back(index);
      for (const int end : portsOf(index)) {
        if (port(end).visited) continue;
        port(end).visited = true;
        component.push_back(end);
      }
    }
  }
  for (const int index : component) {
    Port& member = port(index);
    member.room = member.capacity;
    member.unsettled = static_cast<int>(member.flows.size());
    member.dirty = member.visited = false;
  }
  // Progressive filling: all rates grow together; flows through a port that is full stop growing.
  double level = 0;
  while (!growing.empty()) {
    double step = std::numeric_limits<double>::infinity();
    for (const int index : component) {
      if (port(index).unsettled > 0)
        step = std::min(step, port(index).room / port(index).unsettled);
    }
    level += step;
    for (const int index : component) port(index).room -= step * port(index).unsettled;
    const auto full = [&](int index) {
      return port(index).room <= kSameInstant * port(index).capacity;
    };
    std::vector<int> settled;
    std::erase_if(growing, [&](int index) {
      if (std::ranges::none_of(portsOf(index), full)) return false;
      settled.push_back(index);
      return true;
    });
    for (const int index : settled) {
      for (const int end : portsOf(index)) --port(end).unsettled;
      setRate(index, level);
    }
  }
}

void FluidPorts::setRate(int flowIndex, double rate) {
  Flow& changed = flow(flowIndex);
  changed.left = std::max(0.0, changed.left - changed.rate * (now_ - changed.since));
  changed.since = now_;
  changed.rate = rate;
  ends_.push({now_ + changed.left / rate, flowIndex, ++changed.version});
}

void FluidPorts::dropVoidEnds() {
  while (!ends_.empty()) {
    const Flow& candidate = flow(ends_.top().flow);
    if (candidate.alive && candidate.version == ends_.top().version) return;
    ends_.pop();
  }
}

std::optional<double> FluidPorts::nextTime() {
  refill();
  dropVoidEnds();
  if (ends_.empty()) return std::nullopt;
  return ends_.top().time;
}

std::vector<PortSimulator::Finished> FluidPorts::takeNext() {
  std::vector<Finished> finished;
  std::vector<std::int64_t> streams;
  const std::optional<double> time = nextTime();
  if (!time) return finished;
  now_ = *time;
  while (!ends_.empty() && ends_.top().time <= *time * (1 + kSameInstant)) {
    const int index = ends_.top().flow;
    ends_.pop();
    Flow& done = flow(index);
    for (const int end : portsOf(index)) {
      std::erase(port(end).flows, index);
      markDirty(end);
    }
    done.alive = false;
    freeFlows_.push_back(index);
    finished.push_back({done.id, *time});
    streams.push_back(done.stream);
    dropVoidEnds();
  }
  for (const std::int64_t stream : streams) {
    const auto queue = queued_.find(stream);
    if (queue->second.empty()) {
      queued_.erase(queue);
    } else {
      start(queue->second.front());
      queue->second.pop_front();
    }
  }
  return finished;
}

}  // namespace faultline::schedule
