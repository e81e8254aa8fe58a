#include "resilient_ccl/schedule/written/schedule_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "resilient_ccl/schedule/op_lists.h"
#include "resilient_ccl/schedule/op_table.h"
#include "resilient_ccl/schedule/split.h"

namespace faultline::schedule {
namespace {

using nlohmann::json;

/// Ranks, lanes and operations that a text may name before it is taken for nonsense.
constexpr int kMaxRanks = 4096;
constexpr int kMaxLanes = 4096;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;
/// A chunk's place times the rest of a division stays in 64 bits.
constexpr std::int64_t kMaxChunks = std::int64_t{1} << 31;

constexpr std::array kKinds{OpKind::kSend, OpKind::kRecv, OpKind::kRecvReduce, OpKind::kCopy};

json opAsJson(const Op& op) {
  json out = {{"kind", kindName(op.kind)}, {"offset", op.piece.offset}, {"count", op.piece.count}};
  if (op.kind == OpKind::kCopy) {
    out["source_offset"] = op.source.offset;
  } else {
    out["peer"] = op.peer;
  }
  out["waits"] = json::array();
  for (int i = 0; i < op.waitCount; ++i) {
    const Wait& wait = op.waits[at(i)];
    out["waits"].push_back({{"lane", wait.lane}, {"op", wait.op}, {"count", wait.count}});
  }
  if (op.after >= 0) out["after"] = op.after;
  return out;
}

/// Reads one text; the first mistake ends it.
class Reader {
 public:
  Result<JsonSchedule> read(const json& root) {
    if (!root.is_object()) return errorf(Code::kInvalidArgument, "a mapping is expected");
    ASSIGN_OR_RETURN(const int ranks, intOf<int>(root, "ranks", 1, kMaxRanks));
    ASSIGN_OR_RETURN(data_, intOf<std::int64_t>(root, "elements", 1, kMaxElements));
    ASSIGN_OR_RETURN(const std::string algorithm, textOf(root, "algorithm"));
    ASSIGN_OR_RETURN(const std::string name, textOf(root, "collective"));
    const std::optional<Collective> collective = collectiveFromName(name);
    if (!collective) {
      return errorf(Code::kInvalidArgument, "collective: there is no '{}'", printable(name));
    }
    collective_ = *collective;
    const auto lanes = root.find("lanes");
    if (lanes == root.end() || !lanes->is_array()) {
      return errorf(Code::kInvalidArgument,
                    "lanes: a list is expected, with each lane of each rank");
    }
    if (lanes->empty() || lanes->size() % at(ranks) != 0 || lanes->size() / at(ranks) > kMaxLanes) {
      return errorf(Code::kInvalidArgument,
                    "lanes: there are {}, and {} ranks have equally many, from 1 to {}: write it "
                    "with 'schedule show --json --max-ops -1', without --rank and --lane",
                    lanes->size(), ranks, kMaxLanes);
    }
    made_ = std::make_unique<OpLists>(algorithm, collective_, ranks,
                                      static_cast<int>(lanes->size()) / ranks,
                                      bufferElements(collective_, data_));
    RETURN_IF_ERROR(readRoot(root));
    RETURN_IF_ERROR(readLayers(root));
    std::vector<bool> seen(lanes->size());
    for (const json& lane : *lanes) RETURN_IF_ERROR(readLane(lane, seen));
    RETURN_IF_ERROR(checkWaits());
    return inChunks();
  }

 private:
  template <typename T>
  static Result<T> intOf(const json& object, const char* key, std::int64_t least,
                         std::int64_t most) {
    const auto found = object.find(key);
    const bool is_number = found != object.end() && found->is_number_integer();
    // An unsigned number above all signed ones would come back negative.
    const bool fits =
        is_number && !(found->is_number_unsigned() &&
                       found->get<std::uint64_t>() > static_cast<std::uint64_t>(most));
    const std::int64_t value = fits ? found->get<std::int64_t>() : -1;
    if (!fits || value < least || value > most) {
      return errorf(Code::kInvalidArgument, "{}: a whole number from {} to {} is expected{}", key,
                    least, most, found == object.end() ? "; it is missing" : "");
    }
    return static_cast<T>(value);
  }

  static Result<std::string> textOf(const json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) {
      return errorf(Code::kInvalidArgument, "{}: text is expected{}", key,
                    found == object.end() ? "; it is missing" : "");
    }
    return found->get<std::string>();
  }

  Status readRoot(const json& root) {
    if (!root.contains("root")) return okStatus();
    ASSIGN_OR_RETURN(const int rank, intOf<int>(root, "root", 0, made_->ranks() - 1));
    made_->setRoot(rank);
    return okStatus();
  }

  Status readLayers(const json& root) {
    const auto found = root.find("layers");
    if (found == root.end()) return okStatus();
    std::vector<int> layers;
    std::vector<bool> seen(at(made_->lanes()));
    for (const json& lane : *found) {
      const bool known = lane.is_number_unsigned() && lane.get<std::uint64_t>() < seen.size() &&
                         !seen[lane.get<std::size_t>()];
      if (!known) break;
      seen[lane.get<std::size_t>()] = true;
      layers.push_back(lane.get<int>());
    }
    if (!found->is_array() || found->size() != seen.size() || layers.size() != seen.size()) {
      return errorf(Code::kInvalidArgument, "layers: each of the {} lanes once is expected",
                    seen.size());
    }
    made_->setLayers(std::move(layers));
    return okStatus();
  }

  Status readLane(const json& lane, std::vector<bool>& seen) {
    if (!lane.is_object()) return errorf(Code::kInvalidArgument, "lanes: a mapping is expected");
    ASSIGN_OR_RETURN(const int rank, intOf<int>(lane, "rank", 0, made_->ranks() - 1));
    ASSIGN_OR_RETURN(const int number, intOf<int>(lane, "lane", 0, made_->lanes() - 1));
    const std::string where = fmt::format("rank {} lane {}", rank, number);
    const std::size_t place = at(rank) * at(made_->lanes()) + at(number);
    if (seen[place]) return errorf(Code::kInvalidArgument, "{}: is there twice", where);
    seen[place] = true;
    const auto ops = lane.find("ops");
    if (ops == lane.end() || !ops->is_array()) {
      return errorf(Code::kInvalidArgument, "{}: ops: a list of operations is expected", where);
    }
    const auto told = lane.find("operations");
    if (told != lane.end() && *told != ops->size()) {
      return errorf(Code::kInvalidArgument,
                    "{}: has {} of {} operations: write it with 'schedule show --json --max-ops "
                    "-1', which leaves none out",
                    where, ops->size(), told->dump());
    }
    std::vector<Op>& into = made_->lane(rank, number);
    for (const json& op : *ops) {
      Result<Op> read = opOf(op, rank);
      if (!read.ok()) {
        return read.status().withContext(fmt::format("{} op {}", where, into.size()));
      }
      into.push_back(*read);
    }
    return okStatus();
  }

  Result<Op> opOf(const json& object, int rank) {
    if (!object.is_object()) return errorf(Code::kInvalidArgument, "a mapping is expected");
    Op op;
    ASSIGN_OR_RETURN(const std::string kind, textOf(object, "kind"));
    const auto* const found = std::ranges::find(kKinds, kind, kindName);
    if (found == kKinds.end()) {
      return errorf(Code::kInvalidArgument, "kind: send, recv, recvReduce or copy, not '{}'",
                    printable(kind));
    }
    op.kind = *found;
    ASSIGN_OR_RETURN(op.piece, pieceOf(object, "offset"));
    if (op.kind == OpKind::kCopy) {
      ASSIGN_OR_RETURN(op.source, pieceOf(object, "source_offset"));
    } else {
      ASSIGN_OR_RETURN(op.peer, intOf<int>(object, "peer", 0, made_->ranks() - 1));
      if (op.peer == rank) return errorf(Code::kInvalidArgument, "peer: is the rank itself");
    }
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (object.contains("after")) {
      ASSIGN_OR_RETURN(op.after, intOf<std::int64_t>(object, "after", 0, kMost));
    }
    const auto waits = object.find("waits");
    if (waits == object.end()) return op;
    if (!waits->is_array() || waits->size() > at(Op::kMaxWaits)) {
      return errorf(Code::kInvalidArgument, "waits: a list of at most {} is expected",
                    Op::kMaxWaits);
    }
    for (const json& one : *waits) {
      if (!one.is_object()) return errorf(Code::kInvalidArgument, "waits: mappings are expected");
      Wait& wait = op.waits[at(op.waitCount++)];
      ASSIGN_OR_RETURN(wait.lane, intOf<int>(one, "lane", 0, made_->lanes() - 1));
      ASSIGN_OR_RETURN(wait.op, intOf<std::int64_t>(one, "op", 0, kMost));
      ASSIGN_OR_RETURN(wait.count, intOf<std::int64_t>(one, "count", 0, kMaxElements));
    }
    return op;
  }

  /// Inside the buffer; of an output of its own not across its border.
  Result<Piece> pieceOf(const json& object, const char* offset) {
    const std::int64_t buffer = made_->elements();
    Piece piece;
    ASSIGN_OR_RETURN(piece.offset, intOf<std::int64_t>(object, offset, 0, buffer));
    ASSIGN_OR_RETURN(piece.count, intOf<std::int64_t>(object, "count", 0, buffer - piece.offset));
    if (hasOutput(collective_) && piece.offset < data_ && piece.offset + piece.count > data_) {
      return errorf(Code::kInvalidArgument, "{}: a piece is of the input or of the output", offset);
    }
    return piece;
  }

  Status checkWaits() const {
    for (int rank = 0; rank < made_->ranks(); ++rank) {
      for (int lane = 0; lane < made_->lanes(); ++lane) {
        for (std::int64_t i = 0; i < made_->opCount(rank, lane); ++i) {
          const Op op = made_->op(rank, lane, i);
          const auto wrong = [&](std::string_view what) {
            return errorf(Code::kInvalidArgument, "rank {} lane {} op {}: {}", rank, lane, i, what);
          };
          if (op.after >= made_->opCount(rank, lane)) return wrong("after: there is no such op");
          for (int w = 0; w < op.waitCount; ++w) {
            const Wait& wait = op.waits[at(w)];
            if (wait.op >= made_->opCount(rank, wait.lane)) {
              return wrong("waits: there is no such op");
            }
            if (wait.count > made_->op(rank, wait.lane, wait.op).piece.count) {
              return wrong("waits: count: that operation has fewer elements");
            }
          }
        }
      }
    }
    return okStatus();
  }

  template <typename Visit>
  void eachNumber(const Visit& visit) {
    for (int rank = 0; rank < made_->ranks(); ++rank) {
      for (int lane = 0; lane < made_->lanes(); ++lane) {
        for (Op& op : made_->lane(rank, lane)) {
          visit(op.piece.offset);
          visit(op.piece.count);
          visit(op.source.offset);
          visit(op.source.count);
          for (int w = 0; w < op.waitCount; ++w) visit(op.waits[at(w)].count);
        }
      }
    }
  }

  Result<JsonSchedule> inChunks() {
    std::int64_t unit = data_;
    eachNumber([&](std::int64_t& number) { unit = std::gcd(unit, number); });
    if (data_ / unit > kMaxChunks) {
      return errorf(Code::kInvalidArgument,
                    "its pieces have no useful common unit: {} chunks, {} are possible",
                    data_ / unit, kMaxChunks);
    }
    eachNumber([&](std::int64_t& number) { number /= unit; });
    const std::int64_t chunks = data_ / unit;
    if (hasBlocks(collective_) && chunks % made_->ranks() != 0) {
      return errorf(Code::kInvalidArgument,
                    "its pieces make {} chunks of the data, which {} ranks cannot share evenly: "
                    "write it for a multiple of {} elements",
                    chunks, made_->ranks(), made_->ranks());
    }
    auto made =
        std::make_unique<OpLists>(std::string(made_->algorithm()), collective_, made_->ranks(),
                                  made_->lanes(), bufferElements(collective_, chunks));
    made->setRoot(made_->root());
    made->setLayers({made_->layers().begin(), made_->layers().end()});
    for (int rank = 0; rank < made_->ranks(); ++rank) {
      for (int lane = 0; lane < made_->lanes(); ++lane) {
        made->lane(rank, lane) = std::move(made_->lane(rank, lane));
      }
    }
    return JsonSchedule{std::move(made), chunks};
  }

  Collective collective_ = Collective::kAllReduce;
  std::int64_t data_ = 0;
  std::unique_ptr<OpLists> made_;
};

}  // namespace

json headAsJson(const Schedule& schedule) {
  json head = {{"algorithm", schedule.algorithm()},
               {"collective", collectiveName(schedule.collective())},
               {"ranks", schedule.ranks()},
               {"elements", dataElements(schedule.collective(), schedule.elements())}};
  const bool rooted = schedule.collective() == Collective::kBroadcast ||
                      schedule.collective() == Collective::kReduce;
  if (rooted) head["root"] = schedule.root();
  if (!schedule.layers().empty()) {
    head["layers"] = std::vector<int>(schedule.layers().begin(), schedule.layers().end());
  }
  return head;
}

json laneAsJson(const Schedule& schedule, int rank, int lane, std::int64_t maxOps) {
  json ops = json::array();
  const std::int64_t total = schedule.opCount(rank, lane);
  for (std::int64_t i = 0; i < total && (maxOps < 0 || i < maxOps); ++i) {
    ops.push_back(opAsJson(schedule.op(rank, lane, i)));
  }
  return {{"rank", rank}, {"lane", lane}, {"operations", total}, {"ops", std::move(ops)}};
}

Result<JsonSchedule> scheduleFromJson(std::string_view text) {
  ASSIGN_OR_RETURN(const json root, parseJson(text));
  return Reader().read(root);
}

std::unique_ptr<Schedule> scaled(const JsonSchedule& schedule, std::int64_t dataElements) {
  const Schedule& from = *schedule.inChunks;
  const std::int64_t chunks = schedule.chunks;
  const bool output = hasOutput(from.collective());
  const std::int64_t data = output ? (dataElements + chunks - 1) / chunks * chunks : dataElements;
  const auto boundary = [&](std::int64_t chunk) {
    const std::int64_t base = output && chunk >= chunks ? data : 0;
    const std::int64_t inside = base > 0 ? chunk - chunks : chunk;
    return base + (inside == chunks ? data : split({0, data}, chunks, inside).offset);
  };
  const auto scale = [&](const Piece& piece, std::int64_t count) {
    const std::int64_t first = boundary(piece.offset);
    return Piece{first, boundary(piece.offset + count) - first};
  };
  auto made =
      std::make_unique<OpLists>(std::string(from.algorithm()), from.collective(), from.ranks(),
                                from.lanes(), bufferElements(from.collective(), data));
  made->setRoot(from.root());
  made->setLayers({from.layers().begin(), from.layers().end()});
  for (int rank = 0; rank < from.ranks(); ++rank) {
    for (int lane = 0; lane < from.lanes(); ++lane) {
      for (std::int64_t i = 0; i < from.opCount(rank, lane); ++i) {
        const Op op = from.op(rank, lane, i);
        Op& copy = made->lane(rank, lane).emplace_back(op);
        copy.piece = scale(op.piece, op.piece.count);
        copy.source = scale(op.source, op.source.count);
        for (int w = 0; w < op.waitCount; ++w) {
          Wait& wait = copy.waits[at(w)];
          wait.count = scale(from.op(rank, wait.lane, wait.op).piece, wait.count).count;
        }
      }
    }
  }
  return made;
}

}  // namespace faultline::schedule
