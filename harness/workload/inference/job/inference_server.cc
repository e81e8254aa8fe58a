#include "harness/workload/inference/job/inference_server.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "harness/inference/batcher.h"
#include "harness/model/divide.h"
#include "harness/workload/compute.h"
#include "harness/workload/inference/job/decision.h"
#include "harness/workload/inference/job/stage.h"
#include "harness/workload/poison.h"

namespace faultline::workload {
namespace {

using inference::Arrivals;
using inference::Batcher;
using inference::Request;
using Role = Batcher::Role;

/// A first rank with nothing to do says so this often: to its instance, and to the controller.
constexpr Duration kHeartbeat = 100ms;
/// It looks for keys and values that have come this often.
constexpr Duration kLook = 200us;
/// Transfers of keys and values that a rank has under way, before it waits for the oldest.
constexpr std::size_t kMostTransfers = 8;
/// Steps of both instances, and keys and values in warm-up or not, have data of their own.
constexpr std::uint64_t kDecodeSteps = std::uint64_t{1} << 62;
constexpr std::uint64_t kTransferData = std::uint64_t{1} << 61;
constexpr std::uint64_t kWarmupTransfers = std::uint64_t{1} << 60;

/// Keys and values of one request on their way.
struct Transfer {
  Request request;
  std::vector<std::byte> data;
  std::int64_t count = 0;  // elements
  std::shared_ptr<comm::Work> work;
  TimePoint since;
  std::int64_t word = 0;             // what the first ranks say of it before: its request
  std::shared_ptr<comm::Work> told;  // null on others
};

class InferenceServer final : public Server {
 public:
  explicit InferenceServer(const RankConfig& config)
      : config_(config),
        serving_(*config.workload.serving),
        job_(*config.workload.model),
        ofInstance_(job_.parallel.tensor * job_.parallel.pipeline),
        first_(config.rank / ofInstance_ * ofInstance_),
        role_(!serving_.disaggregated ? Role::kBoth
              : first_ == 0           ? Role::kPrefill
                                      : Role::kDecode),
        stage_(config, first_),
        nextStep_(role_ == Role::kDecode ? kDecodeSteps : 0) {}

  Status join(comm::Communicator& all) override {
    all_ = instance_ = &all;
    if (serving_.disaggregated) {
      ASSIGN_OR_RETURN(ownInstance_, all.split(first_, config_.rank));
      instance_ = ownInstance_.get();
    }
    return stage_.join(all, *instance_);
  }

  Status warmUp(const Hooks& hooks) override {
    hooks_ = &hooks;
    warmup_ = true;
    for (int number = 0; number < config_.workload.warmupIterations; ++number) {
      const Request request{.id = number,
                            .arrival = 0,
                            .prompt = config_.server->usualPrompt,
                            .output = config_.server->usualOutput};
      RETURN_IF_ERROR(all_->barrier()->wait());
      RETURN_IF_ERROR(serveRate({.qps = 0, .requests = {request}}, now()));
    }
    warmup_ = false;
    (void)stage_.takeLate();
    return okStatus();
  }

  Status serve(const Hooks& hooks) override {
    hooks_ = &hooks;
    // One of a rank that receives something in any plan.
    const int tested = serving_.disaggregated ? ofInstance_ : 0;
    if (config_.corruptOneElement && config_.rank == tested) stage_.corruptNext();
    TimePoint start = config_.server->rateStart;
    for (std::size_t i = 0; i < config_.server->rates.size(); ++i) {
      if (start == TimePoint{}) start = now();
      if (config_.rank == 0) {
        const int rate = config_.server->firstRate + static_cast<int>(i);
        RETURN_IF_ERROR(hooks.tell(wire::Rate{rate, start}));
      }
      RETURN_IF_ERROR(serveRate(config_.server->rates[i], start));
      start = TimePoint{};
      RETURN_IF_ERROR(tellServed());
    }
    return okStatus();
  }

 private:
  bool leads() const { return config_.rank == first_; }
  /// The rank of the other instance that has the same part of the model.
  int partner() const {
    return first_ == 0 ? config_.rank + ofInstance_ : config_.rank - ofInstance_;
  }

  Batcher::Limits limits() const {
    return {.batch = serving_.batch,
            .prefillTokens = serving_.prefillTokens,
            .kvTokens = inference::kvTokens(job_)};
  }
  Status serveRate(const Arrivals& rate, TimePoint start);
  Status lead(const Arrivals& rate, TimePoint start);
  Status leadDecode();
  Status follow();

  Status agree(Decision& decision);
  Status carryOut(const Decision& decision);
  Decision decisionOf(const Batcher::Step& step);
  Status begin(const Batcher::Step& step);
  Status tellTokens(const Batcher::Step& step);
  Status end(int id);
  Status runStep(const Stage::Work& work);
  Status sayAlive(bool waits);
  Status tellServed();

  Status sendKeysAndValues(const Request& request);
  Status finishTransfer();
  void receiveKeysAndValues(const Request& request);
  Status takeArrived();
  DataKey keyOf(const Request& request) const {
    return {config_.seed, kTransferData | (warmup_ ? kWarmupTransfers : 0) |
                              static_cast<std::uint64_t>(request.id)};
  }
  std::int64_t transferCount(const Request& request) const {
    return model::divideUp(inference::kvElements(job_, request.prompt), job_.scale);
  }
  Status sendWord(std::int64_t word);

  const RankConfig& config_;
  const inference::Serving& serving_;
  const model::Training& job_;
  const int ofInstance_;
  const int first_;
  const Role role_;
  Stage stage_;
  comm::Communicator* all_ = nullptr;
  comm::Communicator* instance_ = nullptr;
  std::unique_ptr<comm::Communicator> ownInstance_;
  const Hooks* hooks_ = nullptr;
  bool warmup_ = false;
  std::uint64_t nextStep_;
  std::map<int, Request> requests_;  // of the present rate
  std::deque<Transfer> transfers_;   // oldest first
  TimePoint lastDecision_{};
  TimePoint lastAlive_{};
};

Status InferenceServer::serveRate(const Arrivals& rate, TimePoint start) {
  requests_.clear();
  for (const Request& request : rate.requests) requests_[request.id] = request;
  if (!leads()) {
    RETURN_IF_ERROR(follow());
  } else if (role_ == Role::kDecode) {
    RETURN_IF_ERROR(leadDecode());
  } else {
    RETURN_IF_ERROR(lead(rate, start));
  }
  while (!transfers_.empty()) RETURN_IF_ERROR(finishTransfer());
  if (role_ != Role::kPrefill || !leads()) return okStatus();
  // The next rate begins when these requests are over.
  RETURN_IF_ERROR(sendWord(Decision::kNobody));
  std::int64_t over = 0;
  const auto work = all_->receive(&over, 1, reduction::DataType::kI64, partner());
  while (!work->test()) {
    RETURN_IF_ERROR(sayAlive(/*waits=*/false));
    computeUntil(now() + kLook, /*burn=*/false);
  }
  return work->wait();
}

Status InferenceServer::sendWord(std::int64_t word) {
  return all_->send(&word, 1, reduction::DataType::kI64, partner())->wait();
}

/// The instance that requests come to.
Status InferenceServer::lead(const Arrivals& rate, TimePoint start) {
  Batcher batcher(role_, limits());
  const auto arrivalOf = [&](const Request& request) {
    return start + std::chrono::round<Duration>(std::chrono::duration<double>(request.arrival));
  };
  auto next = rate.requests.begin();
  while (true) {
    while (next != rate.requests.end() && arrivalOf(*next) <= now()) batcher.arrive(*next++);
    const Batcher::Step step = batcher.next();
    Decision decision = decisionOf(step);
    if (step.kind == Batcher::Step::Kind::kNone) {
      const bool over = next == rate.requests.end();
      if (over) {
        decision.kind = Decision::Kind::kEnd;
      } else {
        const TimePoint beat = lastDecision_ + kHeartbeat;
        computeUntil(std::min(arrivalOf(*next), beat), /*burn=*/false);
        if (arrivalOf(*next) <= now()) continue;
      }
    }
    if (step.kind == Batcher::Step::Kind::kPrefill) RETURN_IF_ERROR(begin(step));
    RETURN_IF_ERROR(agree(decision));
    if (decision.kind == Decision::Kind::kStep) RETURN_IF_ERROR(runStep(decision.work));
    if (step.kind == Batcher::Step::Kind::kPrefill) RETURN_IF_ERROR(tellTokens(step));
    RETURN_IF_ERROR(carryOut(decision));
    while (!transfers_.empty() && transfers_.front().work->test()) {
      RETURN_IF_ERROR(finishTransfer());
    }
    const bool waits = !transfers_.empty() && now() > transfers_.front().since + kHeartbeat;
    RETURN_IF_ERROR(sayAlive(waits));
    if (decision.kind == Decision::Kind::kEnd) return okStatus();
  }
}

/// The instance that goes on with what the other one has begun.
Status InferenceServer::leadDecode() {
  Batcher batcher(role_, limits());
  std::int64_t offered = 0;
  const auto ask = [&] { return all_->receive(&offered, 1, reduction::DataType::kI64, partner()); };
  std::shared_ptr<comm::Work> offer = ask();
  bool ending = false;
  while (true) {
    Decision arrivals;
    if (offer && offer->test()) {
      RETURN_IF_ERROR(offer->wait());
      if (offered == Decision::kNobody) {
        ending = true;
        offer.reset();
      } else if (const Request& request = requests_.at(static_cast<int>(offered));
                 batcher.hasRoomFor(request)) {
        batcher.expect(request);
        arrivals.accept = request.id;
        offer.reset();
      }
    }
    for (const Transfer& transfer : transfers_) {
      if (!transfer.work->test()) break;
      batcher.arrive(transfer.request);
      ++arrivals.arrived;
    }
    const Batcher::Step step = batcher.next();
    Decision decision = decisionOf(step);
    decision.accept = arrivals.accept;
    decision.arrived = arrivals.arrived;
    const bool idle = step.kind == Batcher::Step::Kind::kNone && decision.arrived == 0 &&
                      decision.accept == Decision::kNobody;
    if (idle && ending && transfers_.empty()) decision.kind = Decision::Kind::kEnd;
    if (idle && decision.kind != Decision::Kind::kEnd && now() < lastDecision_ + kHeartbeat) {
      computeUntil(now() + kLook, /*burn=*/false);
      continue;
    }
    RETURN_IF_ERROR(agree(decision));
    RETURN_IF_ERROR(carryOut(decision));
    if (decision.accept != Decision::kNobody) offer = ask();
    const bool waits = !transfers_.empty() && now() > transfers_.front().since + kHeartbeat;
    RETURN_IF_ERROR(sayAlive(waits));
    if (decision.kind != Decision::Kind::kEnd) continue;
    return sendWord(Decision::kNobody);
  }
}

Status InferenceServer::follow() {
  while (true) {
    Decision decision;
    RETURN_IF_ERROR(agree(decision));
    RETURN_IF_ERROR(carryOut(decision));
    if (decision.kind == Decision::Kind::kEnd) return okStatus();
  }
}

Decision InferenceServer::decisionOf(const Batcher::Step& step) {
  Decision decision;
  if (step.kind == Batcher::Step::Kind::kNone) return decision;
  const bool prefill = step.kind == Batcher::Step::Kind::kPrefill;
  const inference::StepTimes times = prefill ? inference::prefillTimes(job_, step.tokens)
                                             : inference::decodeTimes(job_, step.tokens);
  const auto duration = [](double seconds) {
    return std::chrono::round<Duration>(std::chrono::duration<double>(seconds));
  };
  decision.kind = Decision::Kind::kStep;
  decision.work.number = nextStep_++;
  decision.work.requests = std::ssize(step.ids);
  decision.work.tokens = decision.work.requests;
  if (prefill) {
    decision.work.tokens = 0;
    for (const int tokens : step.tokens) decision.work.tokens += tokens;
  }
  decision.work.layer = duration(times.layer);
  decision.work.head = duration(times.head);
  decision.ends = step.ends;
  return decision;
}

/// All ranks of the instance have the first one's decision after it.
Status InferenceServer::agree(Decision& decision) {
  lastDecision_ = now();
  if (instance_->size() == 1) return okStatus();
  std::vector<std::int64_t> words(wordsOf(serving_.batch));
  if (leads()) words = encode(decision, serving_.batch);
  const auto work = instance_->broadcast(words.data(), words.data(), std::ssize(words),
                                         reduction::DataType::kI64, 0);
  RETURN_IF_ERROR(work->wait());
  if (leads()) return okStatus();
  const std::optional<Decision> heard = decode(words);
  stage_.count({.checked = std::ssize(words), .wrong = heard ? 0 : 1});
  if (!heard) {
    return errorf(Code::kInternal, "rank {}: the decision of rank {} has arrived damaged",
                  config_.rank, first_);
  }
  decision = *heard;
  return okStatus();
}

/// What a decision means for any rank; the step itself, on the rank that requests come to, is over.
Status InferenceServer::carryOut(const Decision& decision) {
  if (decision.accept != Decision::kNobody) receiveKeysAndValues(requests_.at(decision.accept));
  for (int i = 0; i < decision.arrived; ++i) RETURN_IF_ERROR(takeArrived());
  const bool runs = !leads() || role_ == Role::kDecode;
  if (runs && decision.kind == Decision::Kind::kStep) RETURN_IF_ERROR(runStep(decision.work));
  for (const int id : decision.ends) RETURN_IF_ERROR(end(id));
  return okStatus();
}

Status InferenceServer::begin(const Batcher::Step& step) {
  const TimePoint at = now();
  for (const int id : step.ids) {
    RETURN_IF_ERROR(hooks_->tell(wire::Begin{id, warmup_, at}));
  }
  return okStatus();
}

Status InferenceServer::tellTokens(const Batcher::Step& step) {
  if (warmup_) return okStatus();
  return hooks_->tell(wire::Token{step.ids, now()});
}

/// A request is over on this rank.
Status InferenceServer::end(int id) {
  const TimePoint at = now();
  const Request& request = requests_.at(id);
  const bool moves = role_ == Role::kPrefill && request.output > 1;
  if (moves) RETURN_IF_ERROR(sendKeysAndValues(request));
  const Stage::Checks checks = stage_.takeChecks();
  wire::End message{.iteration = id,
                    .warmup = warmup_,
                    .at = at,
                    .wrong = checks.wrong,
                    .checked = checks.checked,
                    .late = stage_.takeLate()};
  if (leads() && !moves) message.last = at;
  return hooks_->tellEnd(std::move(message));
}

/// The rank's part of a step. The first rank tells of each, so that what was done is known also of
/// a server that is killed, and that it gets on. While it computes for long it can say nothing.
Status InferenceServer::runStep(const Stage::Work& work) {
  const Duration computing = stage_.computing(work);
  const bool tells = leads() && !warmup_;
  if (tells && computing > kHeartbeat) {
    RETURN_IF_ERROR(hooks_->tell(wire::Alive{computing}));
  }
  RETURN_IF_ERROR(stage_.run(work));
  return tells ? hooks_->tell(wire::Step{}) : okStatus();
}

/// To the controller, unless something has been waited for for long.
Status InferenceServer::sayAlive(bool waits) {
  const TimePoint present = now();
  if (warmup_ || waits || present < lastAlive_ + kHeartbeat) return okStatus();
  lastAlive_ = present;
  return hooks_->tell(wire::Alive{});
}

Status InferenceServer::tellServed() {
  const Stage::Checks checks = stage_.takeChecks();
  return hooks_->tellServed(
      {.wrong = checks.wrong, .checked = checks.checked, .late = stage_.takeLate()});
}

Status InferenceServer::sendKeysAndValues(const Request& request) {
  while (transfers_.size() >= kMostTransfers) RETURN_IF_ERROR(finishTransfer());
  Transfer& transfer = transfers_.emplace_back();
  const reduction::DataType type = job_.model.dtype;
  transfer.request = request;
  transfer.count = transferCount(request);
  transfer.data.resize(static_cast<std::size_t>(transfer.count * reduction::sizeOf(type)));
  fillIntegers(type, transfer.data.data(), transfer.count, 0, keyOf(request), config_.rank);
  transfer.since = now();
  transfer.word = request.id;
  if (leads()) transfer.told = all_->send(&transfer.word, 1, reduction::DataType::kI64, partner());
  transfer.work = all_->send(transfer.data.data(), transfer.count, type, partner());
  return okStatus();
}

Status InferenceServer::finishTransfer() {
  Status told;
  if (transfers_.front().told) told = transfers_.front().told->wait();
  const Status status = transfers_.front().work->wait();  // in any case: it owns the data
  transfers_.pop_front();
  RETURN_IF_ERROR(told);
  return status;
}

void InferenceServer::receiveKeysAndValues(const Request& request) {
  Transfer& transfer = transfers_.emplace_back();
  const reduction::DataType type = job_.model.dtype;
  transfer.request = request;
  transfer.count = transferCount(request);
  constexpr std::size_t kWord = sizeof(kPoisonWord);
  const auto bytes = static_cast<std::size_t>(transfer.count * reduction::sizeOf(type));
  transfer.data.resize((bytes + kWord - 1) / kWord * kWord);
  poison(transfer.data.data(), std::ssize(transfer.data));
  transfer.since = now();
  transfer.work = all_->receive(transfer.data.data(), transfer.count, type, partner());
}

Status InferenceServer::takeArrived() {
  Transfer& transfer = transfers_.front();
  RETURN_IF_ERROR(transfer.work->wait());
  const reduction::DataType type = job_.model.dtype;
  stage_.corrupt(type, transfer.data.data(), transfer.count);
  stage_.count(checkIntegers(type, transfer.data.data(), transfer.count, 0, keyOf(transfer.request),
                             {.firstRank = partner()}));
  transfers_.pop_front();
  return okStatus();
}

}  // namespace

std::unique_ptr<Server> makeServer(const RankConfig& config) {
  return std::make_unique<InferenceServer>(config);
}

}  // namespace faultline::workload
