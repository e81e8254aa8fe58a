#pragma once

#include <exception>

#include "base/log.h"
#include "resilient_ccl/nccl/net_api.h"

namespace faultline::nccl {

/// A call as NCCL may make it: `Edge<call>::cross`. Nothing that is thrown (std::bad_alloc, mostly)
/// gets into NCCL's frames, which are C: it is logged and kSystemError.
template <auto kCall>
struct Edge;

template <typename... Arguments, NetResult (*kCall)(Arguments...)>
struct Edge<kCall> {
  static NetResult cross(Arguments... arguments) {
    try {
      return kCall(arguments...);
    } catch (const std::exception& thrown) {
      spdlog::warn("{}", thrown.what());
    }
    return NetResult::kSystemError;
  }
};

}  // namespace faultline::nccl
