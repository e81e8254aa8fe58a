#include "resilient_ccl/nccl/attempts.h"

namespace faultline::nccl {

std::uint64_t Attempts::add(Attempt attempt) {
  attempts_.emplace(++numbers_, std::move(attempt));
  return numbers_;
}

Result<std::unique_ptr<Connection>> Attempts::finish(std::uint64_t number, TimePoint now) {
  const auto found = attempts_.find(number);
  if (found == attempts_.end()) {
    return errorf(Code::kInvalidArgument, "connect goes on that has not begun");
  }
  Attempt& attempt = found->second;
  attempt.asked = now;
  Result<bool> ready = false;
  if (!attempt.failure.ok()) {
    ready = attempt.failure;
  } else if (!attempt.call) {
    ready = attempt.pair->ready();
  }
  if (ready.ok() && !*ready) return std::unique_ptr<Connection>();
  const auto node = attempts_.extract(found);
  RETURN_IF_ERROR(ready.status());
  const Attempt& it = node.mapped();
  return Pair::open(it.pair, it.connection, /*sends=*/true, it.device);
}

void Attempts::waitFor(std::vector<pollfd>& waits) const {
  for (const auto& [number, attempt] : attempts_) {
    if (attempt.call) attempt.call->waitFor(waits);
  }
}

/// Whether the other end has answered, and is met.
Result<bool> Attempts::converse(Attempt& attempt, TimePoint now) {
  const std::uint64_t before = attempt.call->refused();
  const auto outcome = attempt.call->advance(now);
  refused_ += attempt.call->refused() - before;
  ASSIGN_OR_RETURN(const auto answer, outcome);
  if (!answer) return false;
  if (!answer->refusal.empty()) {
    return errorf(Code::kUnavailable, "{} refuses: {}", attempt.peer, answer->refusal);
  }
  RETURN_IF_ERROR(attempt.pair->meet(answer->key, answer->address, answer->incarnation));
  return true;
}

void Attempts::advance(TimePoint now) {
  for (auto next = attempts_.begin(); next != attempts_.end();) {
    const auto one = next++;
    Attempt& attempt = one->second;
    if (attempt.call) {
      const Result<bool> answered = converse(attempt, now);
      attempt.failure = answered.status();
      if (answered.ok() && !*answered) continue;
      attempt.call.reset();
      if (!answered.ok()) attempt.pair.reset();  // which may be nobody's then
      attempt.asked = now;
    }
    if (now - attempt.asked >= kRemembered) attempts_.erase(one);
  }
}

}  // namespace faultline::nccl
