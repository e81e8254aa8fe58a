#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "injector/verbs/shim/shim.h"

namespace faultline::injector::verbs::shim {

inline FaultBits bitOf(std::size_t slot) { return FaultBits{1} << slot; }

/// Calls `visit(slot, fault)` for each of the bits.
template <typename Visit>
void forEachFault(const Shim& shim, FaultBits bits, Visit visit) {
  for (; bits != 0; bits &= bits - 1) {
    const auto slot = static_cast<std::size_t>(std::countr_zero(bits));
    if (ArmedFault* const fault = shim.fault(slot)) visit(slot, *fault);
  }
}

/// Those that concern it; none if it is not known.
inline FaultBits faultsOf(const QueuePair* queue_pair) {
  return queue_pair == nullptr ? 0 : queue_pair->faults.load(std::memory_order_acquire);
}

}  // namespace faultline::injector::verbs::shim
