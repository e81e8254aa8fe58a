#include "harness/control/sampler.h"

#include <algorithm>

namespace faultline::run {

Sampler::Sampler(int nodes, int rails, Read read)
    : nodes_(nodes),
      rails_(rails),
      read_(std::move(read)),
      bins_(static_cast<std::size_t>(nodes_) * rails_) {}

Sampler::Sampler(site::Cluster& cluster)
    : Sampler(cluster.nodes(), cluster.rails(),
              [&cluster](std::vector<site::RailCounters>& counters) {
                return cluster.readRailCounters(counters);
              }) {
  cluster_ = &cluster;
}

Status Sampler::sample(TimePoint when) {
  RETURN_IF_ERROR(read_(now_));
  if (last_.empty()) last_ = now_;
  // Those of an interface that has gone, or come anew, say nothing until they are beyond it.
  for (std::size_t i = 0; i < std::min(now_.size(), last_.size()); ++i) {
    now_[i].tx_bytes = std::max(now_[i].tx_bytes, last_[i].tx_bytes);
    now_[i].rx_bytes = std::max(now_[i].rx_bytes, last_[i].rx_bytes);
  }
  if (when >= start_) {
    // They moved between two readings, of which the second may be in the next bin by a little.
    const TimePoint middle = std::max(start_, readAt_) + (when - std::max(start_, readAt_)) / 2;
    const auto bin = static_cast<std::size_t>((middle - start_) / kBin);
    for (std::size_t i = 0; i < now_.size(); ++i) {
      if (bins_[i].size() <= bin) bins_[i].resize(bin + 1);
      bins_[i][bin] += static_cast<std::int64_t>(now_[i].tx_bytes - last_[i].tx_bytes);
    }
  }
  last_ = now_;
  readAt_ = when;
  return okStatus();
}

Status Sampler::keepUp(TimePoint when) {
  if (when < start_) return okStatus();
  const bool ended = readAt_ < start_ || (when - start_) / kBin > (readAt_ - start_) / kBin;
  return ended ? sample(when) : okStatus();
}

void Sampler::start(TimePoint when) {
  const bool read = sample(when).ok();
  start_ = when;
  first_ = read ? now_ : last_;
  if (!read) readAt_ = when - kBin;  // so that it is tried again at once
}

std::uint64_t Sampler::nodeBytes(int node) const {
  std::uint64_t sum = 0;
  for (int rail = 0; rail < rails_ && !now_.empty(); ++rail) {
    const site::RailCounters& counters = now_[static_cast<std::size_t>(node) * rails_ + rail];
    sum += counters.tx_bytes + counters.rx_bytes;
  }
  return sum;
}

std::uint64_t Sampler::otherBytes(int node) const {
  std::uint64_t sum = 0;
  for (int other = 0; other < nodes_; ++other) {
    if (other != node) sum += nodeBytes(other);
  }
  return sum;
}

Result<std::uint64_t> Sampler::payloadDelivered() {
  if (cluster_ == nullptr) return errorf(Code::kUnsupported, "there is no cluster");
  return cluster_->payloadDelivered();
}

std::vector<reports::RailTotals> Sampler::totals() const {
  std::vector<reports::RailTotals> result;
  for (std::size_t i = 0; i < first_.size(); ++i) {
    reports::RailTotals& rail = result.emplace_back();
    rail.node = static_cast<int>(i) / rails_;
    rail.rail = static_cast<int>(i) % rails_;
    rail.tx_bytes = static_cast<std::int64_t>(now_[i].tx_bytes - first_[i].tx_bytes);
    rail.rx_bytes = static_cast<std::int64_t>(now_[i].rx_bytes - first_[i].rx_bytes);
  }
  return result;
}

std::vector<reports::RailSeries> Sampler::series() const {
  std::vector<reports::RailSeries> result;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    reports::RailSeries& series = result.emplace_back();
    series.node = static_cast<int>(i) / rails_;
    series.rail = static_cast<int>(i) % rails_;
    series.bin_ms = toMilliseconds(kBin);
    series.tx_bytes = bins_[i];
  }
  return result;
}

}  // namespace faultline::run
