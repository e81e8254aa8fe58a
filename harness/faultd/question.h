#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "wire/service.h"

namespace faultline::faultd {

/// What the fault service at `socket` says of these interfaces (all: none is named). kNotFound when
/// there is none.
Result<wire::ServiceFacts> askService(const std::string& socket,
                                      const std::vector<std::string>& interfaces, Duration budget);

}  // namespace faultline::faultd
