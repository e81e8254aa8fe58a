#include "resilient_ccl/comm/program.h"

#include <algorithm>
#include <limits>
#include <set>

namespace faultline::comm {

using schedule::Op;
using schedule::OpKind;
using schedule::Piece;

namespace {

bool samePiece(const Piece& a, const Piece& b) {
  return a.offset == b.offset && a.count == b.count;
}

bool writes(OpKind kind) { return kind != OpKind::kSend; }

}  // namespace

/// Works on elementary ranges: the buffer cut at every boundary of a piece.
class Program::Compiler {
 public:
  Compiler(const schedule::Schedule& schedule, int rank) : schedule_(schedule), rank_(rank) {
    program_->ranks_ = schedule.ranks();
    program_->elements_ = schedule.elements();
  }

  std::shared_ptr<const Program> run(const std::vector<std::vector<bool>>& completes) {
    load();
    cut();
    const bool apart = lanesAreApart();
    for (int lane = 0; lane < schedule_.lanes(); ++lane) findHazards(lane);
    for (int lane = 0; lane < schedule_.lanes(); ++lane) dropWaits(lane, apart);
    findChains(apart);
    if (apart || !schedule_.layers().empty()) {
      findFirstReads();
    } else {
      program_->readsSource_ = false;
    }
    for (const Lane& lane : program_->lanes_) {
      for (const Step& step : lane.steps) {
        for (int i = 0; i < step.waitCount; ++i) {
          program_->lanesWait_ |= &program_->lanes_[step.waits[i].lane] != &lane;
        }
      }
    }
    for (std::size_t lane = 0; lane < completes.size(); ++lane) {
      for (std::size_t i = 0; i < completes[lane].size(); ++i) {
        program_->lanes_[lane].steps[i].completes = completes[lane][i];
      }
    }
    return program_;
  }

 private:
  /// Elementary ranges [first, last) of a piece.
  struct Range {
    std::size_t first, last;
  };
  Range rangeOf(const Piece& piece) const {
    if (piece.count == 0) return {0, 0};
    const auto at = [&](std::int64_t element) {
      return static_cast<std::size_t>(std::ranges::lower_bound(cuts_, element) - cuts_.begin());
    };
    return {at(piece.offset), at(piece.offset + piece.count)};
  }

  /// The different peers of some steps of a lane.
  static int peersOf(const Lane& lane, const std::vector<std::int64_t>& steps) {
    std::set<int> peers;
    for (const std::int64_t step : steps) peers.insert(lane.steps[step].peer);
    return static_cast<int>(peers.size());
  }

  void load() {
    program_->lanes_.resize(schedule_.lanes());
    for (int lane = 0; lane < schedule_.lanes(); ++lane) {
      Lane& out = program_->lanes_[lane];
      const std::int64_t count = schedule_.opCount(rank_, lane);
      out.steps.resize(count);
      for (std::int64_t i = 0; i < count; ++i) {
        const Op op = schedule_.op(rank_, lane, i);
        Step& step = out.steps[i];
        step.kind = op.kind;
        step.peer = op.peer;
        step.piece = op.piece;
        step.source = op.source;
        step.waitCount = op.waitCount;
        step.waits = op.waits;
        if (op.kind == OpKind::kSend) out.sends.push_back(i);
        if (op.kind == OpKind::kRecv || op.kind == OpKind::kRecvReduce) out.receives.push_back(i);
      }
      out.sendPeers = peersOf(out, out.sends);
      out.receivePeers = peersOf(out, out.receives);
    }
  }

  void cut() {
    cuts_ = {0, program_->elements_};
    const auto add = [&](const Piece& piece) {
      cuts_.push_back(piece.offset);
      cuts_.push_back(piece.offset + piece.count);
    };
    for (const Lane& lane : program_->lanes_) {
      for (const Step& step : lane.steps) {
        if (step.piece.count > 0) add(step.piece);
        if (step.kind == OpKind::kCopy && step.source.count > 0) add(step.source);
      }
    }
    std::ranges::sort(cuts_);
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  }

  std::size_t ranges() const { return cuts_.size() - 1; }

  /// Whether no lane touches what another one writes.
  bool lanesAreApart() const {
    constexpr int kNobody = -1;
    std::vector<int> writer(ranges(), kNobody), reader(ranges(), kNobody);
    bool apart = true;
    const auto touch = [&](int lane, const Piece& piece, bool isWrite) {
      const auto [first, last] = rangeOf(piece);
      for (std::size_t i = first; i < last; ++i) {
        apart &= writer[i] == kNobody || writer[i] == lane;
        if (isWrite) apart &= reader[i] == kNobody || reader[i] == lane;
        // Of several readers the last one would hide the others: a second one stays for ever.
        int& entry = isWrite ? writer[i] : reader[i];
        entry = entry == kNobody || entry == lane ? lane : schedule_.lanes();
      }
    };
    for (int lane = 0; lane < schedule_.lanes(); ++lane) {
      for (const Step& step : program_->lanes_[lane].steps) {
        touch(lane, step.piece, writes(step.kind));
        if (step.kind == OpKind::kCopy) touch(lane, step.source, false);
      }
    }
    return apart;
  }

  /// Read after write, write after write, write after read; of one lane, in its order.
  void findHazards(int laneNumber) {
    constexpr std::int64_t kNobody = -1;
    Lane& lane = program_->lanes_[laneNumber];
    std::vector<std::int64_t> writer(ranges(), kNobody);
    std::vector<std::vector<std::int64_t>> readers(ranges());
    std::vector<std::int64_t> found;
    for (std::int64_t index = 0; index < std::ssize(lane.steps); ++index) {
      Step& step = lane.steps[index];
      found.clear();
      const auto reads = [&](const Piece& piece) {
        const auto [first, last] = rangeOf(piece);
        for (std::size_t i = first; i < last; ++i) {
          if (writer[i] != kNobody) found.push_back(writer[i]);
        }
        return Range{first, last};
      };
      if (step.kind == OpKind::kCopy) {
        const Range range = reads(step.source);
        for (std::size_t i = range.first; i < range.last; ++i) readers[i].push_back(index);
      }
      const Range range = reads(step.piece);
      for (std::size_t i = range.first; i < range.last; ++i) {
        if (writes(step.kind)) {
          found.insert(found.end(), readers[i].begin(), readers[i].end());
          writer[i] = index;
          readers[i].clear();
        } else {
          readers[i].push_back(index);
        }
      }
      std::ranges::sort(found);
      found.erase(std::unique(found.begin(), found.end()), found.end());
      std::erase(found, index);  // a copy onto itself
      step.firstHazard = static_cast<int>(lane.hazards.size());
      step.hazardCount = static_cast<int>(found.size());
      for (const std::int64_t earlier : found) {
        const Step& other = lane.steps[earlier];
        const bool copies = step.kind == OpKind::kCopy || other.kind == OpKind::kCopy;
        lane.hazards.push_back(
            {.step = earlier, .sameSlices = !copies && samePiece(step.piece, other.piece)});
      }
    }
  }

  /// Waits for whole operations that a hazard says more exactly. Where lanes share elements, only
  /// those of a reduction for the one into the same piece before: whoever touches the piece later
  /// comes after the later one, and with it after both.
  void dropWaits(int laneNumber, bool apart) {
    Lane& lane = program_->lanes_[laneNumber];
    for (Step& step : lane.steps) {
      const auto* const hazards = lane.hazards.data() + step.firstHazard;
      const auto isHazard = [&](const schedule::Wait& wait) {
        return wait.lane == laneNumber &&
               (apart || (step.kind == OpKind::kRecvReduce &&
                          lane.steps[wait.op].kind == OpKind::kRecvReduce)) &&
               std::any_of(hazards, hazards + step.hazardCount, [&](const Hazard& hazard) {
                 return hazard.step == wait.op && (apart || hazard.sameSlices);
               });
      };
      const auto end = step.waits.begin() + step.waitCount;
      step.waitCount =
          static_cast<int>(std::remove_if(step.waits.begin(), end, isHazard) - step.waits.begin());
    }
  }

  /// For each range, how far the reductions of `laneNumber` into it are known to be when another
  /// lane first reads it: the least, over the readers, of the last one that they wait for.
  std::vector<std::int64_t> firstReads(int laneNumber) const {
    std::vector<std::int64_t> result(ranges(), std::numeric_limits<std::int64_t>::max());
    for (int other = 0; other < schedule_.lanes(); ++other) {
      if (other == laneNumber) continue;
      std::vector<std::int64_t> waitedFor(ranges(), -1);
      for (const Step& step : program_->lanes_[other].steps) {
        for (int w = 0; w < step.waitCount; ++w) {
          if (step.waits[w].lane != laneNumber) continue;
          const auto [first, last] =
              rangeOf(program_->lanes_[laneNumber].steps[step.waits[w].op].piece);
          for (std::size_t i = first; i < last; ++i) {
            waitedFor[i] = std::max(waitedFor[i], step.waits[w].op);
          }
        }
        if (step.kind != OpKind::kSend && step.kind != OpKind::kCopy) continue;
        const auto [first, last] = rangeOf(step.kind == OpKind::kCopy ? step.source : step.piece);
        for (std::size_t i = first; i < last; ++i) result[i] = std::min(result[i], waitedFor[i]);
      }
    }
    return result;
  }

  /// Reductions into one piece, one after the other, that nothing else comes between.
  void findChains(bool apart) {
    for (int laneNumber = 0; laneNumber < schedule_.lanes(); ++laneNumber) {
      Lane& lane = program_->lanes_[laneNumber];
      std::vector<std::int64_t> firstRead;
      if (!apart) firstRead = firstReads(laneNumber);
      const auto readBefore = [&](const Piece& piece, std::int64_t index) {
        if (apart) return false;
        const auto [first, last] = rangeOf(piece);
        return std::any_of(firstRead.begin() + static_cast<std::ptrdiff_t>(first),
                           firstRead.begin() + static_cast<std::ptrdiff_t>(last),
                           [&](std::int64_t reduced) { return reduced < index; });
      };
      for (std::int64_t i = 0; i < std::ssize(lane.steps); ++i) {
        Step& step = lane.steps[i];
        if (step.kind != OpKind::kRecvReduce || step.piece.count == 0) continue;
        // One hazard, and that the reduction before: nobody has read in between.
        if (step.hazardCount == 1) {
          const Hazard& hazard = lane.hazards[step.firstHazard];
          Step& before = lane.steps[hazard.step];
          if (before.kind == OpKind::kRecvReduce && hazard.sameSlices &&
              !readBefore(step.piece, i)) {
            before.chainEnds = false;
            step.chain = before.chain;
            step.chainEnds = true;
            continue;
          }
        }
        step.chain = program_->chains_++;
        step.chainBegins = step.chainEnds = true;
      }
    }
  }

  /// Which steps find their elements unwritten, and which elements stay so. Lanes that are apart
  /// may be looked at in any order, layers from the lowest one on.
  void findFirstReads() {
    std::vector<int> lanes(schedule_.layers().begin(), schedule_.layers().end());
    if (lanes.empty()) {
      for (int lane = 0; lane < schedule_.lanes(); ++lane) lanes.push_back(lane);
    }
    std::vector<bool> written(ranges());
    const auto state = [&](const Piece& piece) {
      const auto [first, last] = rangeOf(piece);
      const auto count = std::count(written.begin() + static_cast<std::ptrdiff_t>(first),
                                    written.begin() + static_cast<std::ptrdiff_t>(last), true);
      if (count != 0 && count != static_cast<std::ptrdiff_t>(last - first)) {
        program_->readsSource_ = false;
      }
      return count == 0;
    };
    for (const int lane : lanes) {
      for (Step& step : program_->lanes_[lane].steps) {
        if (step.kind != OpKind::kRecv) {
          step.readsSource = state(step.kind == OpKind::kCopy ? step.source : step.piece);
        }
        if (!writes(step.kind)) continue;
        const auto [first, last] = rangeOf(step.piece);
        std::fill(written.begin() + static_cast<std::ptrdiff_t>(first),
                  written.begin() + static_cast<std::ptrdiff_t>(last), true);
      }
    }
    for (std::size_t i = 0; i < ranges(); ++i) {
      if (!written[i]) program_->untouched_.push_back({cuts_[i], cuts_[i + 1] - cuts_[i]});
    }
  }

  const schedule::Schedule& schedule_;
  const int rank_;
  std::shared_ptr<Program> program_{new Program};
  std::vector<std::int64_t> cuts_;
};

std::shared_ptr<const Program> Program::compile(const schedule::Schedule& schedule, int rank,
                                                const std::vector<std::vector<bool>>& completes) {
  return Compiler(schedule, rank).run(completes);
}

}  // namespace faultline::comm
