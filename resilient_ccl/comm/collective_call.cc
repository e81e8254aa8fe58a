#include "resilient_ccl/comm/collective_call.h"

#include <fmt/ranges.h>

#include <limits>

namespace faultline::comm {

using schedule::Collective;
using schedule::Piece;

Placement placementOf(const CollectiveCall& call, int rank, int ranks) {
  const bool isRoot = rank == call.root;
  const std::int64_t data = hasBlocks(call.collective) ? call.count * ranks : call.count;
  const Piece all{0, data}, own{rank * call.count, call.count}, output{data, data}, nothing{};
  switch (call.collective) {
    case Collective::kAllReduce:
      return {.data = data, .given = all, .written = all};
    case Collective::kReduceScatter:
      return {.data = data, .given = all, .written = own, .needsScratch = ranks > 2};
    case Collective::kAllGather:
      return {.data = data, .given = own, .written = all};
    case Collective::kBroadcast:
      return {.data = data, .given = isRoot ? all : nothing, .written = all};
    case Collective::kReduce:
      return {.data = data,
              .given = all,
              .written = isRoot ? all : nothing,
              .needsScratch = !isRoot && ranks > 2};
    case Collective::kAllToAll:
    case Collective::kSendRecv:
      return {.data = data, .given = all, .written = output};
  }
  return {};
}

Status checkType(reduction::DataType type, std::string_view name) {
  if (isKnown(type)) return okStatus();
  return errorf(Code::kInvalidArgument, "{}: there is no element type number {}; known: {}", name,
                static_cast<int>(type), fmt::join(reduction::kDataTypeNames, ", "));
}

Status checkCall(const CollectiveCall& call, int rank, int ranks) {
  const auto name = collectiveName(call.collective);
  RETURN_IF_ERROR(checkType(call.type, name));
  if (!isKnown(call.op)) {
    return errorf(Code::kInvalidArgument,
                  "{}: there is no operation number {}; known: {}. A schedule adds in an order of "
                  "its own, so that what does not commute cannot be asked for",
                  name, static_cast<int>(call.op), fmt::join(reduction::kReduceOpNames, ", "));
  }
  // Twice: for collectives with an output of their own.
  const std::int64_t most =
      std::numeric_limits<std::int64_t>::max() / 2 / ranks / reduction::sizeOf(call.type);
  if (call.count < 0 || call.count > most) {
    return errorf(Code::kInvalidArgument, "{} of {} elements: a count is from 0 to {} here", name,
                  call.count, most);
  }
  if (call.root < 0 || call.root >= ranks) {
    return errorf(Code::kInvalidArgument, "{}: the root cannot be rank {} of {}", name, call.root,
                  ranks);
  }
  const Placement place = placementOf(call, rank, ranks);
  const Bytes size = reduction::sizeOf(call.type);
  const auto missing = [&](const void* memory, const Piece& piece, std::string_view what) {
    if (memory != nullptr || piece.count == 0) return okStatus();
    return errorf(Code::kInvalidArgument, "{} of {} elements on rank {} without a {}", name,
                  call.count, rank, what);
  };
  RETURN_IF_ERROR(missing(call.source, place.given, "source"));
  RETURN_IF_ERROR(missing(call.target, place.written, "target"));

  const auto from = reinterpret_cast<std::uintptr_t>(call.source);
  const auto to = reinterpret_cast<std::uintptr_t>(call.target);
  const bool overlap = place.given.count > 0 && place.written.count > 0 &&
                       from < to + place.written.count * size &&
                       to < from + place.given.count * size;
  // Where both are the same elements of the buffer they are in place.
  const bool inPlace = !hasOutput(call.collective) &&
                       from - place.given.offset * size == to - place.written.offset * size;
  if (overlap && !inPlace) {
    return errorf(Code::kInvalidArgument, "{}: source and target overlap; {}", name,
                  hasOutput(call.collective)
                      ? "it cannot work in place"
                      : "in place, they must lie so that each element keeps its address");
  }
  return okStatus();
}

}  // namespace faultline::comm
