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
  candidates_.insert(arrival);
}

void OnePorts::startWaiting() {
  for (const int arrival : candidates_) {
    Port& send = sendPort(arrival);
    Port& receive = receivePort(arrival);
    if (send.busy || receive.busy) continue;
    send.busy = receive.busy = true;
    send.waiting.erase(arrival);
    receive.waiting.erase(arrival);
    const Transfer& transfer = transfers_[index(arrival)];
    double rate =
        std::min(bandwidths_.send[rankAt(transfer.from)], bandwidths_.receive[rankAt(transfer.to)]);
    if (transfer.link >= 0) rate = std::min(rate, links_[index(transfer.link)]);
    ends_.push({now_ + transfer.overhead + transfer.size / rate, arrival});
  }
  candidates_.clear();
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
      candidates_.insert(port->waiting.begin(), port->waiting.end());
    }
    finished.push_back({transfers_[index(arrival)].id, *time});
  }
  if (time) now_ = *time;
  return finished;
}

}  // namespace faultline::schedule
