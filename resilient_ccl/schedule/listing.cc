#include "resilient_ccl/schedule/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "resilient_ccl/schedule/op_table.h"

namespace faultline::schedule {

std::string describeOp(const Op& op, std::int64_t index) {
  const auto range = [](const Piece& piece) {
    return fmt::format("[{}, {})", piece.offset, piece.offset + piece.count);
  };
  std::string where;
  if (op.kind == OpKind::kCopy) {
    where = "of " + range(op.source);
  } else {
    where = fmt::format("{} {}", op.kind == OpKind::kSend ? "to" : "from", op.peer);
  }
  std::string line =
      fmt::format("{:>6}  {:<10}  {:<9}  {}", index, kindName(op.kind), where, range(op.piece));
  for (int i = 0; i < op.waitCount; ++i) {
    const Wait& wait = op.waits[static_cast<std::size_t>(i)];
    fmt::format_to(std::back_inserter(line), "  after {}.{}:{}", wait.lane, wait.op, wait.count);
  }
  if (op.after >= 0) fmt::format_to(std::back_inserter(line), "  reduced after {}", op.after);
  return line;
}

std::string listLane(const Schedule& schedule, int rank, int lane, std::int64_t maxOps) {
  const std::int64_t total = schedule.opCount(rank, lane);
  const std::int64_t shown = maxOps < 0 ? total : std::min(total, maxOps);
  std::string text = fmt::format("rank {} lane {}: {} operations\n", rank, lane, total);
  for (std::int64_t i = 0; i < shown; ++i) text += describeOp(schedule.op(rank, lane, i), i) + '\n';
  if (shown < total) fmt::format_to(std::back_inserter(text), "  ... {} more\n", total - shown);
  return text;
}

}  // namespace faultline::schedule
