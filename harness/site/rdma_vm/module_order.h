#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace faultline::rdma_vm {

/// The kernel modules that a guest needs, in no order but that of importance.
std::span<const std::string_view> guestModules();

/// The files of `wanted` modules and of all that they depend on, each once and behind what it
/// needs, as they are to be loaded. `modulesDep` is the text of the modules.dep that depmod makes
/// ("a.ko: b.ko c.ko": a needs c first, then b). A module that is not there is kNotFound. Pure.
Result<std::vector<std::string>> moduleOrder(std::string_view modulesDep,
                                             std::span<const std::string_view> wanted);

}  // namespace faultline::rdma_vm
