#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "harness/cli/inject_options.h"
#include "injector/fault_kind.h"
#include "injector/safety/target.h"

namespace faultline::cli {

/// The interface that a target names: "eth1", "if=eth1", "pci=0000:17:00.0", "mac=02:00:...".
/// kInvalidArgument for anything else.
Result<safety::Wish> hostTarget(std::string_view kind, std::string_view text);

/// `inject` of a fault of one of this host's own interfaces: prints what came of it, and returns
/// the exit code.
int injectOnHost(const InjectOptions& options, const injector::FaultKind& kind, Duration length);

}  // namespace faultline::cli
