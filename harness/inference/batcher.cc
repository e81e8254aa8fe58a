#include "harness/inference/batcher.h"

#include <algorithm>

namespace faultline::inference {

bool Batcher::hasRoomFor(const Request& request) const {
  return running() + expected_ < limits_.batch && kv_ + tokensOf(request) <= limits_.kvTokens;
}

void Batcher::expect(const Request& request) {
  ++expected_;
  kv_ += tokensOf(request);
}

void Batcher::arrive(const Request& request) {
  if (role_ != Role::kDecode) {
    waiting_.push_back(request);
    return;
  }
  --expected_;
  running_.push_back({.request = request});
}

Batcher::Step Batcher::next() {
  Step step = prefill();
  return step.kind == Step::Kind::kNone ? decode() : step;
}

Batcher::Step Batcher::prefill() {
  Step step;
  std::int64_t tokens = 0;
  std::int64_t passing = 0;  // of `kv_`: tokens of those that do not stay
  while (!waiting_.empty() && hasRoomFor(waiting_.front()) &&
         std::ssize(step.ids) < limits_.batch) {
    const Request request = waiting_.front();
    if (!step.ids.empty() && tokens + request.prompt > limits_.prefillTokens) break;
    waiting_.pop_front();
    tokens += request.prompt;
    kv_ += tokensOf(request);
    step.ids.push_back(request.id);
    step.tokens.push_back(request.prompt);
    if (role_ == Role::kPrefill || request.output == 1) {
      step.ends.push_back(request.id);
      passing += tokensOf(request);
    } else {
      running_.push_back({.request = request});
    }
  }
  kv_ -= passing;
  if (!step.ids.empty()) step.kind = Step::Kind::kPrefill;
  return step;
}

Batcher::Step Batcher::decode() {
  Step step;
  if (running_.empty()) return step;
  step.kind = Step::Kind::kDecode;
  for (Running& running : running_) {
    step.ids.push_back(running.request.id);
    step.tokens.push_back(running.request.prompt + running.generated);
    if (++running.generated < running.request.output) continue;
    step.ends.push_back(running.request.id);
    kv_ -= tokensOf(running.request);
  }
  std::erase_if(running_,
                [](const Running& running) { return running.generated >= running.request.output; });
  return step;
}

}  // namespace faultline::inference
