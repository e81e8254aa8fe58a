#include "resilient_ccl/schedule/one_ports.h"

#include <algorithm>

namespace faultline::schedule {

void OnePorts::add(const Transfer& transfer, double time) {
  if (time > now_) startWaiting();
  now_ = std::max(now_, time);
  const int arrival = static_cast<int>(transfers_.size());
  transfers_.push_back(transfer);
  sendPort(arrival).waiting.insert(arrival);
  receivePort(arrival).waiting.insert(arrival);
  added_.push_back(arrival);
}

bool OnePorts::startIfFree(int arrival) {
  Port& send = sendPort(arrival);
  Port& receive = receivePort(arrival);
  if (send.busy || receive.busy) return false;
  send.busy = receive.busy = true;
  send.waiting.erase(arrival);
  receive.waiting.erase(arrival);
  const Transfer& transfer = transfers_[index(arrival)];
  double rate =
      std::min(bandwidths_.send[rankAt(transfer.from)], bandwidths_.receive[rankAt(transfer.to)]);
  if (transfer.link >= 0) rate = std::min(rate, links_[index(transfer.link)]);
  ends_.push({now_ + transfer.overhead + transfer.size / rate, arrival});
  return true;
}

void OnePorts::startWaiting() {
  // In the order of arrival: what is new, and what waits at each port that has become free. Of the
  // latter only the next one is looked at, because a port that has been taken has no use for the
  // others, and there may be hundreds.
  using Next = std::pair<int, Port*>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  for (Port* port : freed_) {
    if (!port->waiting.empty()) next.push({*port->waiting.begin(), port});
  }
  auto added = added_.begin();
  while (added != added_.end() || !next.empty()) {
    if (next.empty() || (added != added_.end() && *added < next.top().first)) {
      startIfFree(*added++);
      continue;
    }
    const auto [arrival, port] = next.top();
    next.pop();
    if (port->busy) continue;
    startIfFree(arrival);
    if (port->busy) continue;
    const auto after = port->waiting.upper_bound(arrival);
    if (after != port->waiting.end()) next.push({*after, port});
  }
  added_.clear();
  freed_.clear();
}

std::optional<double> OnePorts::nextTime() {
  startWaiting();
  if (ends_.empty()) return std::nullopt;
  return ends_.top().time;
}

std::vector<PortSimulator::Finished> OnePorts::takeNext() {
  std::vector<Finished> finished;
  const std::optional<double> time = nextTime();
  while (time && !ends_.empty() && ends_.top().time <= *time) {
    const int arrival = ends_.top().arrival;
    ends_.pop();
    for (Port* port : {&sendPort(arrival), &receivePort(arrival)}) {
      port->busy = false;
      freed_.push_back(port);
    }
    finished.push_back({transfers_[index(arrival)].id, *time});
  }
  if (time) now_ = *time;
  return finished;
}

}  // namespace faultline::schedule
