#include "resilient_ccl/comm/point_to_point.h"

namespace faultline::comm {
namespace {

/// A single operation; only the rank that it is compiled for has it.
class Message final : public schedule::Schedule {
 public:
  Message(int ranks, const schedule::Op& op) : ranks_(ranks), op_(op) {}

  std::string_view algorithm() const override { return "message"; }
  int ranks() const override { return ranks_; }
  int lanes() const override { return 1; }
  std::int64_t elements() const override { return op_.piece.count; }
  std::int64_t opCount(int /*rank*/, int /*lane*/) const override { return 1; }
  schedule::Op op(int /*rank*/, int /*lane*/, std::int64_t /*index*/) const override { return op_; }

 private:
  int ranks_;
  schedule::Op op_;
};

}  // namespace

std::shared_ptr<const Program> pointToPoint(schedule::OpKind kind, int ranks, int peer,
                                            std::int64_t count) {
  schedule::Op op;
  op.kind = kind;
  op.peer = peer;
  op.piece = {0, count};
  return Program::compile(Message(ranks, op), 0);
}

}  // namespace faultline::comm
