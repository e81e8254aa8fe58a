#include "harness/baseline/modelled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/baseline/modelled_options.h"
#include "harness/baseline/strategy_table.h"

// Expected values are worked out by hand from the formulas of docs/baselines.md.

namespace faultline::baseline {
namespace {

using Texts = std::map<std::string, std::string>;

Parameters options(std::span<const ParameterSpec> specs, const Texts& texts = {}) {
  return Parameters::parse("model", specs, texts).value();
}

constexpr std::string_view kExtra = "extra time of all requests, of one fault";

double term(const Modelled& row, std::string_view name) {
  for (const Modelled::Term& each : row.terms) {
    if (each.name == name) return each.value;
  }
  ADD_FAILURE() << name;
  return 0;
}

/// Half loaded: 2 requests a second of 4 possible ones; 6 are running at any moment.
ServingCase serving() {
  return {.requestsPerSecond = 2,
          .capacity = 4,
          .requests = 400,
          .promptTokens = 1000,
          .outputTokens = 200,
          .prefillSeconds = 0.5,
          .firstTokenSeconds = 0.6,
          .tokenSeconds = 0.0125,
          .endToEndSeconds = 3,
          .kvBytesPerToken = 1e6,
          .bytesPerSecond = 1e9};
}

TEST(ModelledTest, RestartAtScaleGivesThePublishedMedianAndItsShareOfTheJob) {
  const Modelled row = restartAtScale(options(kRestartAtScaleOptions));
  EXPECT_NEAR(term(row, "recovery"), 68, 1e-9) << "R2CCL: median 68 min";
  // 12.7 % of the time is lost: 1 / (1 - 0.1271) - 1.
  EXPECT_NEAR(*row.overheadPercent, 100 * 68.0 / 467, 1e-9);
  EXPECT_NEAR(*row.faultSeconds, 68 * 60, 1e-9);
  EXPECT_FALSE(row.faultRequests) << "it is no server";
}

TEST(ModelledTest, AJobThatFailsBeforeItHasRecoveredHasNoOverheadButAReason) {
  const Modelled row =
      restartAtScale(options(kRestartAtScaleOptions, {{"time_between_faults", "60min"}}));
  EXPECT_FALSE(row.overheadPercent);
  EXPECT_FALSE(row.note.empty());
}

TEST(ModelledTest, TheBacklogOfAnOutageFallsByWhatTheServerHasToSpare) {
  // 10 s of backlog fall by half a second each second: over after 20 s; area 10 * 20 / 2.
  EXPECT_NEAR(delayOfAll(2, 0.5, 10, 0, 1000), 2 * 100, 1e-9);
  EXPECT_NEAR(delayOfAll(2, 0.5, 4, 6, 1000), 2 * 100, 1e-9) << "redone work waits as well";
  EXPECT_NEAR(delayOfAll(2, 0.5, 10, 0, 4), 2 * (40 - 4), 1e-9) << "cut off by the last request";
  EXPECT_NEAR(delayOfAll(2, 1, 10, 0, 4), 2 * 40, 1e-9) << "a full server never catches up";
  EXPECT_NEAR(delayOfAll(2, 1.5, 10, 0, 4), 2 * (40 + 4), 1e-9) << "and a fuller one falls back";
  EXPECT_EQ(delayOfAll(2, 0.5, 0, 0, 1000), 0);
}

TEST(ModelledTest, ARestartedServerDoesAllRunningRequestsAgain) {
  const Modelled row = restartServer(
      serving(), options(kRestartServerOptions,
                         {{"detect", "4s"}, {"restart", "5s"}, {"time_between_faults", "200s"}}));
  EXPECT_NEAR(term(row, "outage"), 9, 1e-9);
  EXPECT_NEAR(term(row, "requests redone"), 6, 1e-9);
  EXPECT_NEAR(term(row, "work redone"), 0.75, 1e-9);
  // 9.75 s of backlog, gone after 19.5 s: 2 * 9.75 * 19.5 / 2.
  EXPECT_NEAR(term(row, "of it, that of requests not under way then"), 190.125, 1e-9);
  // The six wait 9 s, and take 0.5 + 100 * 0.0125 = 1.75 s again; 2 * 19.5 others wait.
  EXPECT_NEAR(term(row, kExtra), 6 * 10.75 + 190.125, 1e-9);
  EXPECT_NEAR(term(row, "requests that take longer"), 45, 1e-9);
  EXPECT_NEAR(term(row, "extra time of each of them"), (6 * 10.75 + 190.125) / 45, 1e-9);
  EXPECT_NEAR(*row.overheadPercent, 100 * (6 * 10.75 + 190.125) / 1200, 1e-9);
  // A fifth of the six have no token yet: 12.9 s and all of the queue, of 400 * 0.6 s; the others
  // lose 51.6 s between their tokens, of 400 * 2.4 s.
  EXPECT_NEAR(term(row, "TTFT longer by"), 100 * (12.9 + 190.125) / 240, 1e-9);
  EXPECT_NEAR(term(row, "TPOT longer by"), 100 * 51.6 / 960, 1e-9);
  EXPECT_TRUE(row.note.empty());
}

TEST(ModelledTest, ReroutedRequestsShareOneReplicaLess) {
  ServingCase quarter = serving();
  quarter.requestsPerSecond = 1;  // of each of two replicas
  const Modelled row = rerouteRequests(
      quarter, options(kRerouteRequestsOptions,
                       {{"detect", "10s"}, {"replace", "100s"}, {"time_between_faults", "200s"}}));
  EXPECT_NEAR(term(row, "requests rerouted"), 3, 1e-9);
  // Three prompts of 1.1 times the length; ten requests that came meanwhile.
  EXPECT_NEAR(term(row, "work redone by each other replica"), 3 * 0.55 + 10 / 4.0, 1e-9);
  EXPECT_NEAR(term(row, "load of the others"), 50, 1e-9);
  // M/D/1: 0.5 * 0.25 / (2 * 0.5) - 0.25 * 0.25 / (2 * 0.75).
  EXPECT_NEAR(term(row, "longer wait of each request"), 0.125 - 0.0416666666667, 1e-9);
  const double running = 3 * (10 + 0.55), waiting = 1 * 10 * 10 / 2.0;
  const double queued = 2 * 4.15 * 8.3 / 2;
  EXPECT_NEAR(*row.overheadPercent,
              100 * (running + waiting + queued + 2 * 90 * (0.125 - 0.0416666666667)) / 600, 1e-6);
  EXPECT_NEAR(term(row, "TPOT longer by"), 100 * running / 600, 1e-9)
      << "two replicas have twice the requests, and twice the faults";
  EXPECT_NEAR(term(row, "requests that take longer"), 3 + 10 + 2 * 90, 1e-9);
  EXPECT_TRUE(row.note.empty());
}

TEST(ModelledTest, ReplicasThatAreFullCatchUpWhenTheLostOneIsReplaced) {
  const Modelled row = rerouteRequests(
      serving(), options(kRerouteRequestsOptions,
                         {{"detect", "10s"}, {"replace", "100s"}, {"time_between_faults", "1h"}}));
  EXPECT_NEAR(term(row, "load of the others"), 100, 1e-9);
  // Six prompts of 1.1 times the length and 20 requests are work for 8.3 s, which stays for 90 s;
  // then each of two has half of it, gone at half a second a second.
  const double running = 6 * (10 + 0.55), waiting = 2 * 10 * 10 / 2.0;
  EXPECT_NEAR(term(row, "work redone by each other replica"), 8.3, 1e-9);
  EXPECT_NEAR(term(row, kExtra), running + waiting + 4 * 8.3 * 90 + 2 * 2 * 4.15 * 8.3 / 2, 1e-6);
  EXPECT_TRUE(row.overheadPercent) << row.note;
}

TEST(ModelledTest, PercentagesAreOfTheTimeBetweenFaultsWhateverTheRunHad) {
  ServingCase longer = serving();
  longer.requests *= 100;
  for (const std::string_view name : {"restart_server", "reroute_requests", "kv_replicate"}) {
    const StrategySpec& spec = *findStrategy(name);
    const auto made = [&](const ServingCase& server, const char* between) {
      return *modelOf(name, &server,
                      options(spec.options, {{std::string(kTimeBetweenFaults), between}}));
    };
    const Modelled row = made(serving(), "100h"), rarer = made(serving(), "200h");
    ASSERT_TRUE(row.overheadPercent && rarer.overheadPercent) << name;
    EXPECT_EQ(row.overheadPercent, made(longer, "100h").overheadPercent) << name;
    const double always = name == "kv_replicate" ? 2 : 0;
    EXPECT_NEAR(*row.overheadPercent - always, 2 * (*rarer.overheadPercent - always), 1e-9) << name;
    EXPECT_NEAR(term(row, kExtra), term(rarer, kExtra), 1e-9) << name;
  }
}

TEST(ModelledTest, AServerThatNeverCatchesUpHasNoPercentage) {
  ServingCase full = serving();
  full.requestsPerSecond = full.capacity;
  for (const std::string_view name : {"restart_server", "kv_replicate"}) {
    const StrategySpec& spec = *findStrategy(name);
    const Modelled never = *modelOf(name, &full, options(spec.options));
    EXPECT_FALSE(never.overheadPercent) << name;
    EXPECT_THAT(never.note, ::testing::HasSubstr("as can be served")) << name;
    for (const Modelled::Term& each : never.terms) EXPECT_NE(each.name, kExtra) << name;
    const ServingCase half = serving();
    const Modelled soon =
        *modelOf(name, &half, options(spec.options, {{std::string(kTimeBetweenFaults), "10s"}}));
    EXPECT_FALSE(soon.overheadPercent) << name;
    EXPECT_THAT(soon.note, ::testing::HasSubstr("never catches up")) << name;
  }
}

TEST(ModelledTest, ReplicatedKeysAndValuesComeBackAndFewTokensAreDoneAgain) {
  const Modelled row = kvReplicate(
      serving(),
      options(kKvReplicateOptions, {{"restart", "6.3s"}, {"time_between_faults", "200s"}}));
  EXPECT_NEAR(term(row, "detect"), 3, 1e-9);
  EXPECT_NEAR(term(row, "its keys and values come back"), 6 * 1100 * 1e6 / 1e9, 1e-9);
  EXPECT_NEAR(term(row, "tokens done again"), 0.0125, 1e-9);
  const double outage = 3 + 6.3 + 6.6 + 0.0125;
  EXPECT_NEAR(*row.overheadPercent, 2 + 100 * (6 * outage + 2 * outage * outage) / 1200, 1e-9);
  EXPECT_NEAR(term(row, "TTFT longer by"),
              2 + 100 * (6 * outage / 5 + 2 * outage * outage) / (400 * 0.6), 1e-9);
  EXPECT_NEAR(term(row, "TPOT longer by"), 2 + 100 * (6 * outage) / 1200, 1e-9);
}

TEST(ModelledTest, ARequestOfOneTokenHasNoTimeBetweenTokens) {
  ServingCase one = serving();
  one.tokenSeconds = 0;
  for (const Modelled::Term& each : restartServer(one, options(kRestartServerOptions)).terms) {
    EXPECT_NE(each.name, "TPOT longer by");
  }
}

TEST(ModelledTest, WithItsDefaultsReplicationIsFarCheaperThanARestart) {
  const auto kept = kvReplicate(serving(), options(kKvReplicateOptions));
  const auto restarted = restartServer(serving(), options(kRestartServerOptions));
  EXPECT_GT(term(restarted, kExtra), 10 * term(kept, kExtra));
}

TEST(ModelledTest, EveryModelledStrategyHasAModelAndNoOther) {
  const ServingCase some = serving();
  for (const StrategySpec& strategy : strategies()) {
    if (strategy.written) continue;  // it has no usual file
    const Parameters defaults = options(strategy.options);
    EXPECT_EQ(modelOf(strategy.name, &some, defaults).has_value(), strategy.modelled())
        << strategy.name;
    EXPECT_EQ(isModelled(strategy.name), strategy.modelled());
    if (!strategy.modelled()) continue;
    EXPECT_FALSE(strategy.meetsFaults) << "nothing is done to it";
    EXPECT_EQ(modelOf(strategy.name, nullptr, defaults).has_value(),
              strategy.workload != "inference")
        << "without a server nothing is known of requests";
  }
}

}  // namespace
}  // namespace faultline::baseline
