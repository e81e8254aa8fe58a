#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

#include "harness/scenario/workload_kind.h"
#include "harness/workload/inference/job/decision.h"
#include "harness/workload/inference/job/inference_server.h"
#include "tests/unit/comm/thread_job.h"

// Servers by threads over loopback.

namespace faultline::workload {
namespace {

using ::testing::ElementsAre;

struct Plan {
  int tensor = 1;
  int pipeline = 1;
  bool disaggregated = false;
  int ranks() const { return tensor * pipeline * (disaggregated ? 2 : 1); }
};

RankConfig configOf(const Plan& plan, int rank) {
  RankConfig config;
  config.rank = rank;
  config.size = plan.ranks();
  config.seed = 5;
  scenario::Workload& workload = config.workload;
  workload.kind = scenario::findWorkloadKind("inference");
  workload.warmupIterations = 1;
  model::Training& job = workload.model.emplace();
  job.model = {.name = "small",
               .family = model::Family::kLlama,
               .layers = 4,
               .hidden = 64,
               .heads = 8,
               .kvHeads = 8,
               .ffn = 256,
               .vocabulary = 1000,
               .sequence = 32};
  job.device = {.name = "slow",
                .gflops = 100,
                .efficiency = 1,
                .memory = Bytes{1} << 30,
                .memoryBandwidth = 1'000'000'000};
  job.parallel = {.tensor = plan.tensor, .pipeline = plan.pipeline};
  inference::Serving& serving = workload.serving.emplace();
  serving.batch = 3;
  serving.prefillTokens = 40;
  serving.disaggregated = plan.disaggregated;
  ServerConfig& server = config.server.emplace();
  server.usualPrompt = 10;
  server.usualOutput = 3;
  // All at once, more than fit; one of a single token; and one after a pause.
  inference::Arrivals& rate = server.rates.emplace_back();
  for (int id = 0; id < 6; ++id) {
    rate.requests.push_back(
        {.id = id, .arrival = id == 5 ? 0.25 : 0, .prompt = 10 + id, .output = id == 3 ? 1 : 4});
  }
  server.rates.push_back(
      {.qps = 1, .requests = {{.id = 6, .arrival = 0, .prompt = 50, .output = 2}}});
  return config;
}

using Told = std::vector<wire::FromRank>;

/// What the ranks tell, in the order in which each of them does.
std::map<int, Told> serveAll(const Plan& plan, int corruptedRank = -1) {
  std::map<int, Told> told;
  std::mutex mutex;
  comm::runJob(plan.ranks(), [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    RankConfig config = configOf(plan, rank);
    config.corruptOneElement = rank == corruptedRank;
    const auto server = makeServer(config);
    const auto tell = [&](const wire::FromRank& message) {
      const std::scoped_lock lock(mutex);
      told[rank].push_back(message);
      return okStatus();
    };
    const Server::Hooks hooks{.tell = tell, .tellEnd = tell, .tellServed = tell};
    for (const Status& status :
         {server->join(communicator), server->warmUp(hooks), server->serve(hooks)}) {
      EXPECT_TRUE(status.ok()) << status.message();
    }
    EXPECT_TRUE(communicator.finish().ok());
  });
  return told;
}

/// Those of this kind, but for the ones of warming up.
template <typename Message>
std::vector<Message> ofType(const Told& told) {
  std::vector<Message> found;
  for (const wire::FromRank& message : told) {
    const auto* const one = std::get_if<Message>(&message);
    if (one == nullptr) continue;
    if constexpr (requires { one->warmup; }) {
      if (one->warmup) continue;
    }
    found.push_back(*one);
  }
  return found;
}

template <typename Message>
std::multiset<int> iterationsOf(const std::vector<Message>& messages) {
  std::multiset<int> iterations;
  for (const Message& message : messages) iterations.insert(message.iteration);
  return iterations;
}

struct Sums {
  std::int64_t checked = 0;
  std::int64_t wrong = 0;
};
Sums sumsOf(const std::map<int, Told>& all) {
  Sums sums;
  const auto add = [&](const auto& message) {
    if constexpr (requires { message.checked; }) {
      sums.checked += message.checked;
      sums.wrong += message.wrong;
    }
  };
  for (const auto& [rank, told] : all) {
    for (const wire::FromRank& message : told) std::visit(add, message);
  }
  return sums;
}

class ServerTest : public ::testing::TestWithParam<Plan> {};

TEST_P(ServerTest, EveryRequestIsBegunHasItsFirstTokenAndItsLast) {
  const Plan plan = GetParam();
  const auto told = serveAll(plan);
  const std::multiset<int> all{0, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(iterationsOf(ofType<wire::Begin>(told.at(0))), all);
  std::map<int, TimePoint> first, last;
  for (const wire::Token& message : ofType<wire::Token>(told.at(0))) {
    for (const int id : message.requests) {
      EXPECT_TRUE(first.emplace(id, message.at).second);
    }
  }
  for (const auto& [rank, messages] : told) {
    const auto ends = ofType<wire::End>(messages);
    const bool decodes = plan.disaggregated && rank >= plan.ranks() / 2;
    std::multiset<int> here = all;
    if (decodes) here.erase(3);  // was over with its first token
    EXPECT_EQ(iterationsOf(ends), here) << "rank " << rank;
    for (const wire::End& message : ends) {
      if (!message.last) continue;
      const int id = message.iteration;
      EXPECT_TRUE(last.emplace(id, *message.last).second) << id;
    }
  }
  EXPECT_EQ(first.size(), all.size());
  ASSERT_EQ(last.size(), all.size());
  for (const auto& [id, when] : last) {
    if (id == 3) continue;
    EXPECT_GT(when, first[id]) << id;
  }
  // The rates come one after the other, and a request not before its arrival.
  const auto rates = ofType<wire::Rate>(told.at(0));
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_GE(first[5], rates[0].at + 250ms);
  for (int id = 0; id < 6; ++id) EXPECT_LE(last[id], rates[1].at) << id;
}

TEST_P(ServerTest, EveryElementIsCheckedAndACorruptOneSeen) {
  const Plan plan = GetParam();
  const auto told = serveAll(plan);
  EXPECT_EQ(sumsOf(told).wrong, 0);
  EXPECT_GT(sumsOf(told).checked, 1000);
  const auto corrupted = serveAll(plan, plan.disaggregated ? plan.ranks() / 2 : 0);
  EXPECT_EQ(sumsOf(corrupted).wrong, 1);
}

INSTANTIATE_TEST_SUITE_P(Plans, ServerTest,
                         ::testing::Values(Plan{.tensor = 2}, Plan{.pipeline = 2},
                                           Plan{.tensor = 2, .pipeline = 2},
                                           Plan{.disaggregated = true},
                                           Plan{.tensor = 2, .disaggregated = true},
                                           Plan{.pipeline = 2, .disaggregated = true}));

TEST(DecisionTest, IsWhatWasEncodedOrNothing) {
  Decision decision;
  decision.kind = Decision::Kind::kStep;
  decision.work = {
      .number = std::uint64_t{1} << 62, .tokens = 1, .requests = 2, .layer = 3ns, .head = 4ns};
  decision.accept = 5;
  decision.arrived = 6;
  decision.ends = {7, 8};
  std::vector<std::int64_t> words = encode(decision, 4);
  EXPECT_EQ(words.size(), wordsOf(4));
  const auto same = decode(words);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->kind, decision.kind);
  EXPECT_EQ(same->work.number, decision.work.number);
  EXPECT_EQ(same->work.tokens, 1);
  EXPECT_EQ(same->work.requests, 2);
  EXPECT_EQ(same->work.layer, 3ns);
  EXPECT_EQ(same->work.head, 4ns);
  EXPECT_EQ(same->accept, 5);
  EXPECT_EQ(same->arrived, 6);
  EXPECT_THAT(same->ends, ElementsAre(7, 8));
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] ^= 1;
    EXPECT_FALSE(decode(words)) << i;
    words[i] ^= 1;
  }
}

}  // namespace
}  // namespace faultline::workload
