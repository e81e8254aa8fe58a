#pragma once

#include <cstdint>

namespace faultline::channel {

/// Bugs planted on purpose, to prove that the seeded world of tests/property finds them. Each is
/// one condition at its place in the sources: `mutant(...)` there is false at compile time, and the
/// library contains nothing of it. Where FAULTLINE_MUTANTS is defined (only in a library of the
/// tests) one of them can be chosen at run time. docs/channel_tests.md says what each breaks.
enum class Mutant : std::uint8_t {
  kNone,
  // exactly once
  kRepeatedChunkCounts,
  kReceiveDoneOneChunkEarly,
  kNotDiverted,
  kStagedNotPlaced,
  kCopiesCountTwice,
  kTailBudgetIgnored,
  kTailShareIgnored,
  kWindowIgnored,
  kReachIgnored,
  kRepetitionObeyed,
  // ends of streams
  kWithdrawnStillRead,
  kWithdrawnStillWritten,
  kLateWriteNotAwaited,
  kCloseNotTold,
  kFencedChunksNotAwaited,
  kGrantsOfClosedKept,
  kSmallWithdrawn,
  kSmallNotCopied,
  kEagerRefusalNotTold,
  // fence, exchange, resend
  kNoFence,
  kFenceAtOneEnd,
  kResendBeforeOwnFence,
  kResendWithoutExchange,
  kResendEverything,
  kLedgerOffByOne,
  kDoneWhenSubmitted,
  kOldReceiptBelieved,
  kOldWordBelieved,
  kCopyStillRead,
  kTailFromLateWrites,
  kTailOverLateWrites,
  kCopyResent,
  kQueueLeftOnDeadRail,
  kInheritedChunksForgotten,
  kSettledNotTwice,
  // both ends know
  kPeerNotTold,
  kToldPeerIgnores,
  kLostNextEpochIgnored,
  kRecordNotRepeated,
  kRecordNotAcknowledged,
  kCauseNotMirrored,
  kPortNotLookedAt,
  kLatePortIgnored,
  kLatePortNotTold,
  // silence
  kVerdictFromSilence,
  kBurstProves,
  kKernelNotAsked,
  kOneMoveIsEnough,
  kRoundTripIgnored,
  kNobodyJoinsATrial,
  kDoubtIsProof,
  kDoubtKept,
  // numbers of datagrams
  kGapsIgnored,
  kOneLostIsAGap,
  kRepeatedIsAGap,
  kOvertakenIsLost,
  kOvertakenStaysLost,
  // slow rails
  kSilentPathIsSlow,
  kAbsenceIsSlowness,
  // no waiting for ever
  kNoGiveUp,
  kHalfOpenKept,
  kAcknowledgementNotAskedFor,
  kStuckRailKept,
  kOpeningIsProgress,
  // failback
  kNoFailback,
  kReturnWithoutProbes,
  kHoldOffFixed,
  kLastRailHeldOff,
  kMissingNotProbed,
  kMissingNotTold,
  // witnesses
  kDamagedWitnessBelieved,
  kOneSilentOutweighs,
  kPlaceFromTheFirst,
  kNowhereIsSilent,
  kAnyAnswerForAll,
  kAnswerOfAnotherCase,
  kEnd,
};

#ifdef FAULTLINE_MUTANTS
/// The bug that is there now.
inline Mutant plantedMutant = Mutant::kNone;
inline bool mutant(Mutant which) { return which == plantedMutant; }
#else
constexpr bool mutant(Mutant) { return false; }
#endif

}  // namespace faultline::channel
