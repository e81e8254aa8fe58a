#pragma once

#include "injector/fault_kind.h"

/// Every fault, in the order in which they are listed: one line each. A fault's file defines the
/// constant beside the class that it describes. For those files and registry.cc only: everybody
/// else asks registry.h.
#define FAULTLINE_FAULTS(FAULT) \
  FAULT(kPortDownKind)          \
  FAULT(kPortFlapKind)          \
  FAULT(kThrottleKind)          \
  FAULT(kBlackholeKind)         \
  FAULT(kPathFlapKind)          \
  FAULT(kLateDeliveryKind)      \
  FAULT(kOneWayLossKind)        \
  FAULT(kPathCutKind)           \
  FAULT(kLossKind)              \
  FAULT(kMtuShrinkKind)         \
  FAULT(kDuplicateKind)         \
  FAULT(kReorderKind)           \
  FAULT(kCorruptKind)           \
  FAULT(kConnectionResetKind)   \
  FAULT(kAddressChangeKind)     \
  FAULT(kProcessStopKind)       \
  FAULT(kProcessKillKind)       \
  FAULT(kQpErrorKind)           \
  FAULT(kPostErrorKind)         \
  FAULT(kCompletionRewriteKind) \
  FAULT(kCompletionLossKind)    \
  FAULT(kQpDelayKind)           \
  FAULT(kQpRateKind)            \
  FAULT(kRdmaPortDownKind)      \
  FAULT(kRdmaSilentDropKind)    \
  FAULT(kRdmaThrottleKind)      \
  FAULT(kRdmaLinkDeleteKind)    \
  FAULT(kExternalKind)          \
  FAULT(kHostOverloadKind)      \
  FAULT(kNoneKind)

namespace faultline::injector {

#define FAULTLINE_DECLARE_FAULT(kind) extern const FaultKind kind;
FAULTLINE_FAULTS(FAULTLINE_DECLARE_FAULT)
#undef FAULTLINE_DECLARE_FAULT

}  // namespace faultline::injector
