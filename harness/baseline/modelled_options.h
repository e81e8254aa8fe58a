#pragma once

#include <array>
#include <string_view>

#include "base/parameter.h"

/// Parameters of the modelled baselines: each has a default, a unit and the source of the default.
namespace faultline::baseline {

inline constexpr double kShortestPhase = 0.001;  // the least that a phase may last, in seconds
inline constexpr double kLongestPhase = 3600;    // of a recovery
inline constexpr double kDay = 24 * 3600;
inline constexpr double kCentury = 36500 * kDay;

// Defaults of what nobody has published for this server, but for a system that it resembles.
inline constexpr ParameterSpec kDetectByRetries{
    "detect",
    ParameterType::kDuration,
    "58600ms",
    "until the lost NIC is an error: measured on a ConnectX-6 with the defaults of NCCL up to "
    "2.30, "
    "NCCL_IB_TIMEOUT=20 and NCCL_IB_RETRY_CNT=7 (docs/baselines.md)",
    {},
    kShortestPhase,
    kLongestPhase};

inline constexpr std::array kRestartAtScaleOptions{
    ParameterSpec{"detect",
                  ParameterType::kDuration,
                  "16.5min",
                  "until the fault is noticed: the middle of the 3 to 30 min that R2CCL quotes "
                  "(second-hand)",
                  {},
                  kShortestPhase,
                  kDay},
    ParameterSpec{"isolate",
                  ParameterType::kDuration,
                  "11.5min",
                  "until the node is replaced: the middle of its 9 to 14 min (second-hand)",
                  {},
                  kShortestPhase,
                  kDay},
    ParameterSpec{"load",
                  ParameterType::kDuration,
                  "31min",
                  "until the checkpoint is loaded: the middle of its 15 to 47 min (second-hand)",
                  {},
                  kShortestPhase,
                  kDay},
    ParameterSpec{
        "checkpoint_every",
        ParameterType::kDuration,
        "18min",
        "half of it is lost on average; not published: with this the sum is the published "
        "median of 68 min (second-hand)",
        {},
        kShortestPhase,
        kDay},
    ParameterSpec{
        "time_between_faults",
        ParameterType::kDuration,
        "535min",
        "from one fault to the next, recovery included: 68 min are published to be 12.7 % "
        "of it (second-hand)",
        {},
        kShortestPhase,
        30 * kDay},
};

/// Option of the models of servers: what the times that fault_free took are worth.
inline constexpr std::string_view kTimes = "times";
inline constexpr std::string_view kUnscaled = "unscaled";
inline constexpr std::string_view kAsMeasured = "as_measured";
inline constexpr std::array kTimesChoices{kUnscaled, kAsMeasured};
inline constexpr ParameterSpec kMeasuredTimes{
    kTimes, ParameterType::kEnum, kUnscaled,
    "what was measured, in real time: 'scale' times as long; or as it is, where device and rails "
    "of the scenario are themselves 'scale' times slower than real ones",
    kTimesChoices};

/// What percentages of the models of servers are of; what one fault costs does not depend on it.
inline constexpr std::string_view kTimeBetweenFaults = "time_between_faults";
inline constexpr ParameterSpec kBetweenFaultsOfAServer{
    kTimeBetweenFaults,
    ParameterType::kDuration,
    "75800h",
    "from one fault of this server to the next: 2048 servers of 8 GPUs had 35 of switches and "
    "cables "
    "in 54 days, Meta's Llama 3 (arXiv 2407.21783, section 3.3.4; second-hand)",
    {},
    kShortestPhase,
    kCentury};

inline constexpr std::array kRestartServerOptions{
    kMeasuredTimes,
    kDetectByRetries,
    ParameterSpec{"restart",
                  ParameterType::kDuration,
                  "5min",
                  "new processes, weights, communicators: the middle of the up to 10 min of "
                  "KevlarFlow (arXiv 2601.22438), abstract",
                  {},
                  kShortestPhase,
                  kLongestPhase},
    kBetweenFaultsOfAServer,
};

inline constexpr std::array kRerouteRequestsOptions{
    kMeasuredTimes,
    kDetectByRetries,
    ParameterSpec{"replicas",
                  ParameterType::kInteger,
                  "2",
                  "servers of the model that share the requests, before the fault; the fewest with "
                  "which it works",
                  {},
                  2,
                  1024},
    ParameterSpec{
        "replace",
        ParameterType::kDuration,
        "11.5min",
        "until there is another replica in its place: the middle of the 9 to 14 min until a "
        "node is replaced that R2CCL quotes (second-hand)",
        {},
        kShortestPhase,
        kDay},
    kBetweenFaultsOfAServer,
};

inline constexpr std::array kKvReplicateOptions{
    kMeasuredTimes,
    ParameterSpec{"heartbeat",
                  ParameterType::kDuration,
                  "1s",
                  "between two signs of life, DejaVu's repository (msr-fiddle/dejavu)",
                  {},
                  kShortestPhase,
                  kLongestPhase},
    ParameterSpec{"missed",
                  ParameterType::kInteger,
                  "3",
                  "heartbeats that are missed until a worker is dead, likewise",
                  {},
                  1,
                  1000},
    ParameterSpec{
        "restart",
        ParameterType::kDuration,
        "30s",
        "of the worker: process, weights, communicators. DejaVu publishes none; KevlarFlow "
        "(arXiv 2601.22438) needs a twentieth of 10 min",
        {},
        kShortestPhase,
        kLongestPhase},
    ParameterSpec{
        "replicate_every",
        ParameterType::kInteger,
        "1",
        "tokens after which keys and values are copied: all are streamed; so many are done "
        "again",
        {},
        1,
        1'000'000},
    ParameterSpec{"streaming",
                  ParameterType::kPercent,
                  "2%",
                  "what copying costs all the time: at most 2 %, DejaVu (arXiv 2403.01876; "
                  "second-hand)",
                  {},
                  0,
                  100},
    kBetweenFaultsOfAServer,
};

}  // namespace faultline::baseline
