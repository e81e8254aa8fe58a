#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "resilient_ccl/comm/completions.h"
#include "resilient_ccl/comm/executor.h"
#include "resilient_ccl/schedule/schedule.h"

namespace faultline::comm {

/// All ranks of a collective in one process, with a network and reducers that do the next thing in
/// an order drawn from a seed. It is as unkind as it may be: the place of a receive is scribbled
/// over as soon as its message is sent, a message is read at the last moment, and its sender hears
/// of the end later than the receiver.
class FakeJob {
 public:
  struct Options {
    DataType type = DataType::kF32;
    ReduceOp op = ReduceOp::kSum;
    bool inPlace = true;
    int window = Executor::kWindow;
    Bytes sliceBytes = 256 << 10;
    std::uint64_t seed = 0;
    bool orderly = false;  ///< the oldest thing next, and nothing scribbled: for benchmarks
  };

  /// `inputs`: one buffer per rank.
  FakeJob(const schedule::Schedule& schedule, const Options& options,
          std::vector<std::vector<std::byte>> inputs)
      : options_(options), random_(options.seed), inputs_(std::move(inputs)) {
    for (int rank = 0; rank < schedule.ranks(); ++rank) {
      ranks_.push_back(std::make_unique<Rank>(*this, rank));
      Rank& self = *ranks_.back();
      self.result =
          options.inPlace ? inputs_[rank] : std::vector<std::byte>(inputs_[rank].size(), kScribble);
      const Executor::Job job{
          .program = Program::compile(schedule, rank, completesOf(schedule, rank)),
          .source = options.inPlace ? self.result.data() : inputs_[rank].data(),
          .target = self.result.data(),
          .type = options.type,
          .op = options.op,
          .communicator = 1,
          .number = 7,
          .window = options.window};
      Executor::copySource(job);
      self.executor = std::make_unique<Executor>(job, self, self.reducer, self.staging,
                                                 static_cast<std::uint32_t>(rank));
    }
  }

  /// False: some rank has not finished, and nothing is left to do.
  bool run() {
    for (auto& rank : ranks_) rank->executor->start();
    while (step()) {
    }
    for (const auto& rank : ranks_) {
      if (!rank->executor->finished()) return false;
    }
    return true;
  }

  const std::vector<std::byte>& input(int rank) const { return inputs_[rank]; }
  const std::vector<std::byte>& result(int rank) const { return ranks_[rank]->result; }
  /// The most blocks of staging memory that a rank ever had.
  std::size_t stagingBlocks() const {
    std::size_t most = 0;
    for (const auto& rank : ranks_) most = std::max(most, rank->staging.made());
    return most;
  }
  /// Something that a port must not see: data that change while they are sent, a message that has
  /// another size than its receive.
  const std::vector<std::string>& complaints() const { return complaints_; }
  std::int64_t messages() const { return messages_; }

 private:
  std::vector<std::vector<bool>> completesOf(const schedule::Schedule& schedule, int rank) {
    if (options_.op != ReduceOp::kAvg) return {};
    auto found = findCompletions(schedule, rank);
    if (found.ok()) return std::move(*found);
    complaints_.push_back(std::string(found.status().message()));
    return {};
  }

  static constexpr std::byte kScribble{0xa5};

  using Key = std::tuple<int, int, std::uint64_t, std::uint64_t>;  // from, to, stream, sequence
  struct Send {
    const std::byte* data;
    Bytes length;
    std::uint64_t token;
  };
  struct Receive {
    std::byte* place;
    Bytes capacity;
    std::uint64_t token;
  };
  struct Transfer {
    int from, to;
    Send send;
    Receive receive;
    std::vector<std::byte> asSent;
  };
  struct SendDone {
    int rank;
    std::uint64_t token;
  };

  struct Rank final : MessagePort, ReducerClient {
    Rank(FakeJob& owner, int number)
        : job(owner), self(number), staging(owner.options_.sliceBytes) {}
    void postSend(int peer, const channel::MessageKey& key, const std::byte* data, Bytes length,
                  std::uint64_t token) override {
      job.sends_[{self, peer, key.stream, key.sequence}] = {data, length, token};
      job.match({self, peer, key.stream, key.sequence});
    }
    void postReceive(int peer, const channel::MessageKey& key, std::byte* region, Bytes capacity,
                     std::uint64_t token) override {
      job.receives_[{peer, self, key.stream, key.sequence}] = {region, capacity, token};
      job.match({peer, self, key.stream, key.sequence});
    }
    void reduced(std::uint64_t token) override { executor->reduced(token); }

    FakeJob& job;
    const int self;
    StagingPool staging;
    PollingReducer reducer;
    std::vector<std::byte> result;
    std::unique_ptr<Executor> executor;
  };

  void match(const Key& key) {
    const auto send = sends_.find(key);
    const auto receive = receives_.find(key);
    if (send == sends_.end() || receive == receives_.end()) return;
    const auto& [data, length, token] = send->second;
    Transfer transfer{std::get<0>(key), std::get<1>(key), send->second, receive->second, {}};
    if (length != receive->second.capacity) complaints_.push_back("sizes differ");
    if (!options_.orderly) {
      transfer.asSent.assign(data, data + length);
      std::memset(receive->second.place, static_cast<int>(kScribble), length);
    }
    sends_.erase(send);
    receives_.erase(receive);
    transfers_.push_back(std::move(transfer));
    ++messages_;
  }

  template <typename T>
  T take(std::deque<T>& from) {
    if (!options_.orderly) std::swap(from.front(), from[random_.below(from.size())]);
    T one = std::move(from.front());
    from.pop_front();
    return one;
  }

  bool step() {
    std::size_t reducing = 0;
    for (const auto& rank : ranks_) reducing += rank->reducer.busy() ? 1 : 0;
    const std::size_t choices = transfers_.size() + sendsDone_.size() + reducing;
    if (choices == 0) return false;
    std::size_t choice = options_.orderly ? 0 : random_.below(choices);
    if (choice < transfers_.size()) {
      const Transfer transfer = take(transfers_);
      if (!options_.orderly &&
          std::memcmp(transfer.asSent.data(), transfer.send.data, transfer.send.length) != 0) {
        complaints_.push_back("data changed while they were sent");
      }
      std::memcpy(transfer.receive.place, transfer.send.data, transfer.send.length);
      sendsDone_.push_back({transfer.from, transfer.send.token});
      ranks_[transfer.to]->executor->messageDone(transfer.receive.token);
      return true;
    }
    choice -= transfers_.size();
    if (choice < sendsDone_.size()) {
      const SendDone done = take(sendsDone_);
      ranks_[done.rank]->executor->messageDone(done.token);
      return true;
    }
    choice -= sendsDone_.size();
    for (const auto& rank : ranks_) {
      if (rank->reducer.busy() && choice-- == 0) {
        rank->reducer.poll(*rank);
        break;
      }
    }
    return true;
  }

  const Options options_;
  Random random_;
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::map<Key, Send> sends_;
  std::map<Key, Receive> receives_;
  std::deque<Transfer> transfers_;
  std::deque<SendDone> sendsDone_;
  std::vector<std::string> complaints_;
  std::int64_t messages_ = 0;
};

}  // namespace faultline::comm
