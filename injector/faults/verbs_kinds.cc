#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "injector/fault_kind.h"
#include "injector/faults/fault_list.h"
#include "injector/faults/usual_rows.h"
#include "injector/faults/verbs_fault.h"
#include "injector/verbs/error_names.h"
#include "injector/verbs/rule.h"

// What the verbs shim does to queue pairs: one class, an effect each.
namespace faultline::injector {
namespace {

/// In all programs of the namespace that have the shim.
template <verbs::Effect effect>
std::unique_ptr<Fault> makeVerbs(const FaultParameters& parameters,
                                 const netlink::LinkTarget& target) {
  return std::make_unique<VerbsFault>(effect, parameters, programsOf(target));
}

/// One list behind the other.
template <std::size_t kFirst, std::size_t kSecond>
constexpr std::array<ParameterSpec, kFirst + kSecond> joined(
    const std::array<ParameterSpec, kFirst>& first,
    const std::array<ParameterSpec, kSecond>& second) {
  std::array<ParameterSpec, kFirst + kSecond> all{};
  std::ranges::copy(first, all.begin());
  std::ranges::copy(second, all.begin() + kFirst);
  return all;
}

constexpr std::array<std::string_view, 2> kPicks{"all", "one"};
constexpr std::array<std::string_view, 3> kSideNames{"send", "recv", "both"};
constexpr auto kErrnoNames = verbs::namesOf(verbs::kErrnos);
constexpr auto kStatusNames = verbs::namesOf(verbs::kStatuses);

constexpr double kLargestQpNumber = 0xFFFFFF;  // 24 bits on the wire
constexpr double kLargestLid = 0xFFFF;
constexpr double kMostOperations = 1e15;
constexpr double kMostVerbsBytes = 1e18;
constexpr double kLeastProbabilityPercent = 1e-6;
constexpr double kLongestDelaySeconds = 10;

// Which queue pairs.
constexpr ParameterSpec kDevice{"device", ParameterType::kName, "any",
                                "only queue pairs of this RDMA device"};
constexpr ParameterSpec kQpNumber{
    "qpn", ParameterType::kInteger, "0", "only the queue pair of this number; 0: any", {},
    0,     kLargestQpNumber};
constexpr ParameterSpec kPeerQpNumber{"peer_qpn",
                                      ParameterType::kInteger,
                                      "0",
                                      "only queue pairs connected to this number; 0: any",
                                      {},
                                      0,
                                      kLargestQpNumber};
constexpr ParameterSpec kPeerLid{"dlid",     ParameterType::kInteger,
                                 "0",        "only queue pairs to this LID (InfiniBand); 0: any",
                                 {},         0,
                                 kLargestLid};
constexpr ParameterSpec kPeerGid{
    "dgid", ParameterType::kText, "any",
    "only queue pairs to this GID, written as an IPv6 address: for RoCE v2 over IPv4 like "
    "'::ffff:10.0.0.2'"};
constexpr ParameterSpec kPickAll{
    "pick", ParameterType::kEnum, "all",
    "all: every queue pair that is meant; one: of those that are there, in whichever process, one "
    "chosen by the seed",
    kPicks};
constexpr ParameterSpec kPickOne{
    "pick", ParameterType::kEnum, "one",
    "all: every queue pair that is meant and is there, or operates; one: of those that are there, "
    "in whichever process, one chosen by the seed",
    kPicks};
constexpr ParameterSpec kSide{"side", ParameterType::kEnum, "send",
                              "which work requests, or their completions", kSideNames};

// When.
constexpr ParameterSpec kAfterOperations{
    "after_operations",
    ParameterType::kInteger,
    "0",
    "strike only after so many operations (posts, or completions) of the queue pairs that are "
    "meant, in each process",
    {},
    0,
    kMostOperations};
constexpr ParameterSpec kAfterBytes{"after_bytes",
                                    ParameterType::kSize,
                                    "0B",
                                    "strike only after they have posted, or received, so "
                                    "much, in each process",
                                    {},
                                    0,
                                    kMostVerbsBytes};
constexpr ParameterSpec kProbability{"probability",
                                     ParameterType::kPercent,
                                     "100%",
                                     "of each operation after that, to be struck",
                                     {},
                                     kLeastProbabilityPercent,
                                     100};
constexpr ParameterSpec kBudget{"budget",
                                ParameterType::kInteger,
                                "0",
                                "how often it strikes at most, in each process; 0: no limit",
                                {},
                                0,
                                kMostOperations};
constexpr ParameterSpec kVerbsSeed{
    "seed", ParameterType::kInteger, "1", "of what is random: the same seed, the same choices", {},
    0,      kMostOperations};

constexpr std::array kWhich{kDevice, kQpNumber, kPeerQpNumber, kPeerLid, kPeerGid};
constexpr std::array kSidePickAll{kSide, kPickAll};
constexpr std::array kFrom{kAfterOperations, kAfterBytes};
constexpr std::array kHowOften{kProbability, kBudget, kVerbsSeed};
/// All of one side that are meant.
constexpr auto kOfASide = joined(joined(kSidePickAll, kWhich), joined(kFrom, kHowOften));

constexpr auto kQpErrorParameters =
    joined(joined(std::array{kPickOne}, kWhich), joined(kFrom, kHowOften));
constexpr auto kPostErrorParameters =
    joined(std::array{ParameterSpec{"errno", ParameterType::kEnum, "ENOMEM", "what posting returns",
                                    kErrnoNames}},
           kOfASide);
constexpr auto kCompletionRewriteParameters =
    joined(std::array{ParameterSpec{
               "status", ParameterType::kEnum, "retry_exc_err",
               "the status that a successful completion gets; its vendor_err becomes 0xfa171d00",
               kStatusNames}},
           kOfASide);
constexpr auto kCompletionLossParameters = kOfASide;
constexpr auto kQpDelayParameters =
    joined(std::array{ParameterSpec{"delay",
                                    ParameterType::kDuration,
                                    "",
                                    "how much later a completion is delivered",
                                    {},
                                    0.000001,
                                    kLongestDelaySeconds}},
           kOfASide);
constexpr auto kQpRateParameters =
    joined(joined(std::array{ParameterSpec{"rate", ParameterType::kRate, "",
                                           "of all queue pairs that are meant, together, in each "
                                           "process: their completions come as "
                                           "if a link of this rate carried their data"}},
                  joined(kSidePickAll, kWhich)),
           joined(kFrom, std::array{kBudget, kVerbsSeed}));

constexpr std::string_view kShimUndo =
    "the shim lets everything pass again; it does so by itself when the injector dies or is silent "
    "for two seconds";

constexpr std::string_view kSeenInSoftware =
    "on adapters, and under NCCL and MSCCL++ (proven on rxe under perftest)";

}  // namespace

constinit const FaultKind kQpErrorKind{
    .name = "qp_error",
    .summary =
        "Queue pairs of programs with the verbs shim go to the error state, by their owner's "
        "own ibv_modify_qp.",
    .sees = "work flushed with errors on that queue pair only; its peer runs into a timeout",
    .evidence = "the state of the queue pair, read back by ibv_query_qp, is ERR and was not before",
    .undo = "nothing to undo: programs may connect again",
    .parameters = kQpErrorParameters,
    .target = TargetKind::kProcesses,
    .signatures = kAnySignatures,
    .lasts = true,
    .endsConnection = true,
    .unproven = kSeenInSoftware,
    .ofQueuePairs = true,
    .make = makeVerbs<verbs::Effect::kQpError>};

constinit const FaultKind kPostErrorKind{
    .name = "post_error",
    .summary = "Posting work requests fails in programs with the verbs shim.",
    .sees = "an errno from posting; nothing reaches the device",
    .evidence = "posts that returned the errno to the program, counted there",
    .undo = kShimUndo,
    .parameters = kPostErrorParameters,
    .target = TargetKind::kProcesses,
    .signatures = kAnySignatures,
    .endsConnection = true,
    .unproven = kSeenInSoftware,
    .ofQueuePairs = true,
    .make = makeVerbs<verbs::Effect::kPostError>};

constinit const FaultKind kCompletionRewriteKind{
    .name = "completion_rewrite",
    .summary = "Successful completions become errors in programs with the verbs shim.",
    .sees = "a completion with that status, though the data has moved",
    .evidence = "completions that the program got with that status, counted there",
    .undo = kShimUndo,
    .parameters = kCompletionRewriteParameters,
    .target = TargetKind::kProcesses,
    .signatures = kAnySignatures,
    .endsConnection = true,
    .unproven = kSeenInSoftware,
    .ofQueuePairs = true,
    .make = makeVerbs<verbs::Effect::kCompletionRewrite>};

constinit const FaultKind kCompletionLossKind{
    .name = "completion_loss",
    .summary = "Completions never reach programs with the verbs shim.",
    .sees = "silence: work that never ends, though the data has moved",
    .evidence = "completions that were swallowed, counted in the program",
    .undo = "the shim lets everything pass again; what was swallowed stays lost",
    .parameters = kCompletionLossParameters,
    .target = TargetKind::kProcesses,
    .signatures = kAnySignatures,
    .unproven = kSeenInSoftware,
    .ofQueuePairs = true,
    .make = makeVerbs<verbs::Effect::kCompletionLoss>};

constinit const FaultKind kQpDelayKind{
    .name = "qp_delay",
    .summary = "Completions reach programs with the verbs shim late.",
    .sees = "nothing but time, on the queue pairs that are meant",
    .evidence =
        "completions delivered, each not earlier than the delay after it came from the device",
    .undo = kShimUndo,
    .parameters = kQpDelayParameters,
    .target = TargetKind::kProcesses,
    .signatures = kAnySignatures,
    .unproven = kSeenInSoftware,
    .ofQueuePairs = true,
    .make = makeVerbs<verbs::Effect::kQpDelay>};

constinit const FaultKind kQpRateKind{
    .name = "qp_rate",
    .summary = "Completions reach programs with the verbs shim at the pace of a slower link.",
    .sees = "nothing but time, on the queue pairs that are meant",
    .evidence =
        "bytes per second whose completions were delivered while more were held back: the "
        "achieved rate and not the requested one",
    .undo = kShimUndo,
    .parameters = kQpRateParameters,
    .target = TargetKind::kProcesses,
    .signatures = kAnySignatures,
    .unproven = kSeenInSoftware,
    .ofQueuePairs = true,
    .make = makeVerbs<verbs::Effect::kQpRate>};

}  // namespace faultline::injector
