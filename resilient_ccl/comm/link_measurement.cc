#include "resilient_ccl/comm/link_measurement.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "resilient_ccl/comm/communicator.h"
#include "resilient_ccl/comm/quickest.h"

namespace faultline::comm {
namespace {

/// Latency is that of a message that follows from the one before it, as in an algorithm: so many
/// such steps in a row, without a barrier, which ranks do not leave together. The median of so many
/// rows counts.
constexpr int kSteps = 7;
constexpr int kRows = 5;
constexpr Bytes kSmall = 8;
/// What one message costs, whatever is in it, is by how much many take longer than one, all so
/// small that the wire does not count: with more in them the processors' work hides behind the
/// wire, until several calls share the processors. The median of so many pairs counts.
constexpr int kBurst = 64;
constexpr int kBurstRounds = 5;
/// For the bandwidth: doubled until the slowest rank needs so long.
constexpr Bytes kFirstBulk = 256 << 10;
constexpr Bytes kLargestBulk = 8 << 20;
constexpr Duration kLongEnough = 50ms;
/// It is by how much twice as many such messages take longer than these, under way together. What
/// shapers let pass at once and what the last chunks wait for on one of several rails is in both:
/// one message over four rails seemed to have two thirds to nine tenths of the bandwidth, over one
/// rail up to 1.06 of it. What disturbs an exchange makes it longer, never shorter: of so many of
/// each the quickest counts. (The median of the differences was up to 1.14 of the bandwidth on a
/// busy machine: a disturbed one of the fewer messages makes a difference too small.)
constexpr int kBulkMessages = 4;
constexpr int kBulkRounds = 3;
/// Beside other programs all three may be disturbed, and a link seemed to have half of its
/// bandwidth: it goes on until the quickest of each is confirmed on three quarters of the ranks, or
/// there were so many.
constexpr int kMostBulkRounds = 12;
/// Seconds; below this a difference of two times is noise.
constexpr double kLeastCost = 1e-6;

class Measurement {
 public:
  explicit Measurement(Communicator& comm) : comm_(comm) {
    // Ranks of one node do not show the network.
    const int shift = comm.ranksPerNode() < comm.size() ? comm.ranksPerNode() : 1;
    to_ = (comm.rank() + shift) % comm.size();
    from_ = (comm.rank() + comm.size() - shift) % comm.size();
    out_.resize(2 * kLargestBulk);
    in_.resize(2 * kLargestBulk);
  }

  Result<plan::LinkModel> measure() {
    plan::LinkModel link;
    RETURN_IF_ERROR(exchange(kBurst, kSmall).status());  // everything has been used once
    std::vector<double> steps;
    for (int i = 0; i < kRows; ++i) {
      ASSIGN_OR_RETURN(const double seconds, exchange(1, kSmall, kSteps));
      steps.push_back(seconds / kSteps);
    }
    ASSIGN_OR_RETURN(std::vector<double> all, ofAll(median(steps)));
    const double small = median(all);

    ASSIGN_OR_RETURN(link.bandwidth, bandwidth());

    std::vector<double> costs;
    for (int i = 0; i < kBurstRounds; ++i) {
      ASSIGN_OR_RETURN(const double one, exchange(1, kSmall));
      ASSIGN_OR_RETURN(const double many, exchange(kBurst, kSmall));
      costs.push_back((many - one) / (kBurst - 1));
    }
    ASSIGN_OR_RETURN(all, ofAll(median(costs)));
    link.perMessage = std::max(kLeastCost, median(all));
    link.latency = std::max(kLeastCost, small - link.perMessage);
    link.bandwidth *= comm_.ranksPerNode() < comm_.size() ? comm_.ranksPerNode() : 1;
    return link;
  }

 private:
  /// Seconds until `count` messages of `bytes` have gone and as many have come, `steps` times.
  Result<double> exchange(int count, Bytes bytes, int steps = 1) {
    RETURN_IF_ERROR(comm_.barrier()->wait());
    const TimePoint begin = now();
    TimePoint end = begin;
    for (int step = 0; step < steps; ++step) {
      std::vector<std::shared_ptr<Work>> works;
      for (int i = 0; i < count; ++i) {
        works.push_back(comm_.receive(in_.data() + i * bytes, bytes, DataType::kU8, from_));
        works.push_back(comm_.send(out_.data() + i * bytes, bytes, DataType::kU8, to_));
      }
      for (const auto& work : works) {
        RETURN_IF_ERROR(work->wait());
        end = std::max(end, work->finished());
      }
    }
    return toSeconds(end - begin);
  }

  /// Bytes per second, of a rank that is faster than three quarters of them.
  Result<double> bandwidth() {
    Bytes bytes = kFirstBulk;
    double once = 0;
    for (;; bytes *= 2) {
      ASSIGN_OR_RETURN(const double seconds, exchange(kBulkMessages, bytes / kBulkMessages));
      ASSIGN_OR_RETURN(const std::vector<double> all, ofAll(seconds));
      once = quick(all);
      const double slowest = *std::ranges::max_element(all);
      if (slowest >= toSeconds(kLongEnough) || 2 * bytes > kLargestBulk) break;
    }
    Quickest half, whole;
    for (int round = 1; round <= kMostBulkRounds; ++round) {
      ASSIGN_OR_RETURN(const double fewer, exchange(kBulkMessages, bytes / kBulkMessages));
      ASSIGN_OR_RETURN(const double more, exchange(2 * kBulkMessages, bytes / kBulkMessages));
      half.add(fewer);
      whole.add(more);
      if (round < kBulkRounds) continue;
      const bool sure = half.confirmed() && whole.confirmed();
      ASSIGN_OR_RETURN(const std::vector<double> doubts, ofAll(sure ? 0 : 1));
      if (std::ranges::count(doubts, 1.0) <= std::ssize(doubts) / 4) break;
    }
    ASSIGN_OR_RETURN(const std::vector<double> halves, ofAll(half.first));
    ASSIGN_OR_RETURN(const std::vector<double> wholes, ofAll(whole.first));
    const double difference = quick(wholes) - quick(halves);
    // One of less than half is a mistake of the machine's: one of the two was disturbed.
    return static_cast<double>(bytes) / (difference < once / 2 ? once : difference);
  }

  Result<std::vector<double>> ofAll(double own) {
    std::vector<double> all(static_cast<std::size_t>(comm_.size()));
    all[static_cast<std::size_t>(comm_.rank())] = own;
    RETURN_IF_ERROR(
        comm_.allReduce(all.data(), all.data(), std::ssize(all), DataType::kF64, ReduceOp::kSum)
            ->wait());
    return all;
  }

  /// Ports may be slow from the start, and the fastest of many ranks is one that noise has
  /// flattered.
  static double quick(std::vector<double> seconds) {
    std::ranges::sort(seconds);
    return seconds[(seconds.size() - 1) / 4];
  }

  static double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  }

  Communicator& comm_;
  int to_ = 0, from_ = 0;
  std::vector<std::byte> out_, in_;
};

}  // namespace

Result<plan::LinkModel> measureLink(Communicator& comm) { return Measurement(comm).measure(); }

}  // namespace faultline::comm
