#include "harness/model/training_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <tuple>

#include "tests/unit/model/some_training.h"

namespace faultline::model {
namespace {

using ::testing::ElementsAre;

/// Small, and with all kinds of parts.
Training smallTraining(const Parallel& parallel, Family family = Family::kGpt) {
  Training training = someTraining(parallel);
  training.model = {.name = "small",
                    .family = family,
                    .layers = 8,
                    .hidden = 64,
                    .heads = 8,
                    .kvHeads = 8,
                    .ffn = 256,
                    .vocabulary = 1000,
                    .sequence = 32,
                    .experts = parallel.expert > 1 ? 4 : 1,
                    .activeExperts = parallel.expert > 1 ? 2 : 1};
  training.sequence = 32;
  training.microBatches = 3;
  return training;
}

std::vector<Training> manyTrainings() {
  std::vector<Training> all;
  for (const Family family : {Family::kGpt, Family::kLlama}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const int data : {1, 2, 3}) {
        for (const int tensor : {1, 2}) {
          for (const int pipeline : {1, 2, 4}) {
            for (const int expert : {1, 2}) {
              Training training = smallTraining({data, tensor, pipeline, expert, zero}, family);
              training.scale = 7;
              training.buckets = 2;
              const int ranks = training.parallel.ranks();
              if (mistakesOf(training, ranks).empty()) all.push_back(std::move(training));
            }
          }
        }
      }
    }
  }
  return all;
}

/// Carries out the programs of all ranks as a network would: a collective is done when all members
/// have begun it, a receive when its send has begun. True when all come to their end,
/// and all calls to theirs.
class Replay {
 public:
  explicit Replay(const Training& training) : training_(training) {
    for (int rank = 0; rank < training.parallel.ranks(); ++rank) {
      programs_.push_back(programOf(training, rank));
      next_.push_back(0);
    }
  }

  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
        while (next_[rank] < programs_[rank].steps.size() && step(static_cast<int>(rank))) {
          ++next_[rank];
          moved = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      const Program& program = programs_[rank];
      if (next_[rank] != program.steps.size()) return false;
      for (std::size_t call = 0; call < program.calls.size(); ++call) {
        const int number = static_cast<int>(call);
        if (!isDone(static_cast<int>(rank), number, program.calls[call])) return false;
      }
    }
    return true;
  }

 private:
  using Key = std::tuple<std::vector<int>, int>;  // members, number
  bool step(int rank) {
    const Step& step = programs_[rank].steps[next_[rank]];
    if (step.kind == Step::Kind::kCompute) return true;
    const Call& call = programs_[rank].calls[step.call];
    if (step.kind == Step::Kind::kCall) {
      begin(rank, step.call, call);
      return true;
    }
    return isDone(rank, step.call, call);
  }

  void begin(int rank, int number, const Call& call) {
    if (call.operation == Operation::kSend || call.operation == Operation::kReceive) {
      const bool sends = call.operation == Operation::kSend;
      const std::tuple pair(sends ? rank : call.peer, sends ? call.peer : rank);
      auto& mine = sends ? sent_[pair] : received_[pair];
      mine.push_back(call);
      order_[{rank, number}] = mine.size() - 1;
      const auto& other = sends ? received_[pair] : sent_[pair];
      if (other.size() >= mine.size()) expectSame(other[mine.size() - 1], call);
      return;
    }
    const std::vector<int> members = membersOf(training_, call.group, rank);
    ASSERT_EQ(std::count(members.begin(), members.end(), rank), 1);
    // As a communicator does: the n-th call of each member is one collective.
    const int index = begun_[{call.group, rank}]++;
    auto& calls = collectives_[{static_cast<int>(call.group), members, index}];
    if (!calls.empty()) expectSame(calls.front(), call);
    calls.push_back(call);
    order_[{rank, number}] = static_cast<std::size_t>(index);
  }

  static void expectSame(const Call& one, const Call& other) {
    EXPECT_EQ(one.phase, other.phase);
    EXPECT_EQ(one.count, other.count);
    EXPECT_EQ(one.offset, other.offset);
    EXPECT_EQ(one.blocks, other.blocks);
  }

  bool isDone(int rank, int number, const Call& call) {
    const std::size_t index = order_[{rank, number}];
    if (call.operation == Operation::kReceive) {
      return sent_[{call.peer, rank}].size() > index;
    }
    if (call.operation == Operation::kSend) {
      return received_[{rank, call.peer}].size() > index;
    }
    const std::vector<int> members = membersOf(training_, call.group, rank);
    return collectives_[{static_cast<int>(call.group), members, static_cast<int>(index)}].size() ==
           members.size();
  }

  const Training& training_;
  std::vector<Program> programs_;
  std::vector<std::size_t> next_;
  std::map<std::tuple<int, int>, std::vector<Call>> sent_;
  std::map<std::tuple<int, int>, std::vector<Call>> received_;
  std::map<std::pair<Group, int>, int> begun_;
  std::map<std::tuple<int, std::vector<int>, int>, std::vector<Call>> collectives_;
  std::map<std::pair<int, int>, std::size_t> order_;
};

TEST(TrainingProgramTest, AllRanksMeetInEveryCallAndComeToTheEnd) {
  const std::vector<Training> trainings = manyTrainings();
  ASSERT_GT(trainings.size(), 100u);
  for (const Training& training : trainings) {
    const Parallel& p = training.parallel;
    SCOPED_TRACE(::testing::Message()
                 << "data " << p.data << " tensor " << p.tensor << " pipeline " << p.pipeline
                 << " expert " << p.expert << " zero " << p.zero);
    EXPECT_TRUE(Replay(training).run());
    if (HasFailure()) return;
  }
}

TEST(TrainingProgramTest, ComputesWhatTheModelNeeds) {
  for (const Training& training : manyTrainings()) {
    double slowest = 0;
    for (int rank = 0; rank < training.parallel.ranks(); ++rank) {
      double sum = 0;
      for (const Step& step : programOf(training, rank).steps) sum += step.time;
      slowest = std::max(slowest, sum);
    }
    EXPECT_NEAR(slowest, toSeconds(computeTime(training)), 2e-9);
  }
}

/// Elements of a phase that one rank calls, and in how many calls.
struct Sum {
  std::int64_t elements = 0;
  int calls = 0;
};
Sum sumOf(const Program& program, Phase phase) {
  Sum sum;
  for (const Call& call : program.calls) {
    if (call.phase != phase) continue;
    sum.elements += call.elements();
    ++sum.calls;
  }
  return sum;
}

TEST(TrainingProgramTest, DataParallelReducesTheWholeGradientOnce) {
  const Training training = smallTraining({.data = 2});
  const Program program = programOf(training, 0);
  const Sum gradients = sumOf(program, Phase::kGradients);
  EXPECT_EQ(gradients.elements, countParameters(training.model).total);
  EXPECT_EQ(gradients.calls, training.buckets);
  EXPECT_EQ(program.stateElements, gradients.elements);
  EXPECT_EQ(program.calls.size(), static_cast<std::size_t>(training.buckets)) << "and nothing else";
}

TEST(TrainingProgramTest, BucketsAreReducedWhileTheRestIsComputed) {
  const Training training = smallTraining({.data = 2});
  std::string order;
  for (const Step& step : programOf(training, 0).steps) {
    order += step.kind == Step::Kind::kCompute ? 'c' : step.kind == Step::Kind::kCall ? 'C' : 'W';
  }
  // 8 layers of 2 parts and the head: forward 17, backward 17; in the last backward pass a bucket
  // after every second layer, none of them waited for.
  EXPECT_EQ(order, std::string(5 * 17 + 1, 'c') + "ccccCccccCccccCccccC");
}

/// ZeRO's paper, section 7: stages 1 and 2 move as much as plain data parallelism (2 x the
/// parameters: ReduceScatter and AllGather), stage 3 half as much again.
TEST(TrainingProgramTest, ZeroMovesWhatItsPaperSays) {
  const auto moved = [](int zero) {
    Training training = smallTraining({.data = 2, .zero = zero});
    training.microBatches = 1;
    const Program program = programOf(training, 1);
    EXPECT_EQ(sumOf(program, Phase::kGradients).calls, training.buckets);
    return std::pair(sumOf(program, Phase::kGradients).elements,
                     sumOf(program, Phase::kParameters).elements);
  };
  const auto [gradient, none] = moved(0);
  EXPECT_EQ(none, 0);
  for (const int zero : {1, 2, 3}) {
    const auto [reduced, gathered] = moved(zero);
    EXPECT_NEAR(reduced, gradient, 8) << "rounded up by bucket";
    EXPECT_NEAR(gathered, zero == 3 ? 2 * gradient : gradient, 16);
  }
}

TEST(TrainingProgramTest, ZeroReducesEveryMicroBatchFromStageTwoOn) {
  const auto calls = [](int zero, Phase phase) {
    return sumOf(programOf(smallTraining({.data = 2, .zero = zero}), 0), phase).calls;
  };
  constexpr int kBuckets = 4, kMicroBatches = 3;
  EXPECT_EQ(calls(1, Phase::kGradients), kBuckets);
  EXPECT_EQ(calls(2, Phase::kGradients), kBuckets * kMicroBatches);
  EXPECT_EQ(calls(3, Phase::kGradients), kBuckets * kMicroBatches);
  EXPECT_EQ(calls(1, Phase::kParameters), kBuckets);
  EXPECT_EQ(calls(2, Phase::kParameters), kBuckets);
  EXPECT_EQ(calls(3, Phase::kParameters), 2 * kBuckets * kMicroBatches);
}

TEST(TrainingProgramTest, ParametersAreGatheredOneBucketAhead) {
  const Program program = programOf(smallTraining({.data = 2, .zero = 3}), 0);
  int open = 0, most = 0;
  for (const Step& step : program.steps) {
    if (step.call < 0 || program.calls[step.call].phase != Phase::kParameters) continue;
    open += step.kind == Step::Kind::kCall ? 1 : -1;
    most = std::max(most, open);
  }
  EXPECT_EQ(most, 2);
  EXPECT_EQ(open, 0) << "every layer has waited for its parameters";
}

TEST(TrainingProgramTest, TensorRanksSumTwiceALayerAndPass) {
  const Training training = smallTraining({.tensor = 2});
  const Program program = programOf(training, 0);
  for (const Phase phase : {Phase::kTensorForward, Phase::kTensorBackward}) {
    const Sum sum = sumOf(program, phase);
    EXPECT_EQ(sum.calls, 2 * 8 * 3);
    EXPECT_EQ(sum.elements, sum.calls * 32 * 64) << "tokens x hidden";
  }
}

TEST(TrainingProgramTest, TokensGoToTheirExpertsAndBack) {
  const Training training = smallTraining({.expert = 2});
  const Program program = programOf(training, 0);
  for (const Phase phase : {Phase::kExpertForward, Phase::kExpertBackward}) {
    const Sum sum = sumOf(program, phase);
    EXPECT_EQ(sum.calls, 2 * 8 * 3);
    EXPECT_EQ(sum.elements, sum.calls * 32 * 2 * 64) << "tokens x active experts x hidden";
  }
  EXPECT_EQ(sumOf(program, Phase::kExpertGradients).calls, 0) << "there is one copy of each";
  EXPECT_EQ(sumOf(program, Phase::kGradients).elements, stageParameters(training, 0).dense);
}

/// 1F1B, as the sequence of passes: activations come in, or gradients do.
std::string passesOf(const Training& training, int rank) {
  const Program program = programOf(training, rank);
  const double head = layerTimes(training).head;
  std::string passes;
  for (const Step& step : program.steps) {
    if (step.kind == Step::Kind::kCompute && step.time == 2 * head) passes += 'B';
    if (step.kind != Step::Kind::kCall) continue;
    const Call& call = program.calls[step.call];
    if (call.phase == Phase::kActivations && rank == 0) passes += 'F';
    if (call.operation == Operation::kReceive) {
      passes += call.phase == Phase::kActivations ? 'F' : 'B';
    }
  }
  return passes;
}

TEST(TrainingProgramTest, ThePipelineHasOneForwardOneBackward) {
  Training training = smallTraining({.pipeline = 4});
  training.microBatches = 5;
  EXPECT_EQ(passesOf(training, 0), "FFFFBFBBBB");
  EXPECT_EQ(passesOf(training, 1), "FFFBFBFBBB");
  EXPECT_EQ(passesOf(training, 2), "FFBFBFBFBB");
  EXPECT_EQ(passesOf(training, 3), "FBFBFBFBFB");
  training.microBatches = 2;
  EXPECT_EQ(passesOf(training, 0), "FFBB");
}

TEST(TrainingProgramTest, ScaleDividesEverySize) {
  Training training = smallTraining({.data = 2, .tensor = 2, .pipeline = 2});
  const Program whole = programOf(training, 0);
  training.scale = 10;
  const Program tenth = programOf(training, 0);
  ASSERT_EQ(whole.calls.size(), tenth.calls.size());
  for (std::size_t i = 0; i < whole.calls.size(); ++i) {
    EXPECT_EQ(tenth.calls[i].count, (whole.calls[i].count + 9) / 10);
    EXPECT_EQ(tenth.calls[i].realBytes, whole.calls[i].realBytes);
  }
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    EXPECT_NEAR(tenth.steps[i].time, whole.steps[i].time / 10, 1e-12);
  }
}

TEST(TrainingProgramTest, CallsOfARankHaveDataOfTheirOwn) {
  for (const Training& training : manyTrainings()) {
    std::map<std::pair<Phase, Operation>, std::int64_t> ends;
    for (const Call& call : programOf(training, 0).calls) {
      std::int64_t& end = ends[{call.phase, call.operation}];
      ASSERT_GE(call.offset, end);
      end = call.offset + call.elements();
    }
  }
}

TEST(TrainingProgramTest, BuffersAreThoseOfAllCalls) {
  Training training = smallTraining({.data = 2, .zero = 1});
  training.microBatches = 1;
  const Program program = programOf(training, 0);
  std::int64_t expected = 0;
  for (const Call& call : program.calls) expected += 3 * call.count;  // 2 blocks and 1
  EXPECT_EQ(program.bufferElements(), expected);
}

}  // namespace
}  // namespace faultline::model
