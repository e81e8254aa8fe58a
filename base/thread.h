#pragma once

#include <functional>
#include <thread>

#include "base/status.h"

namespace faultline {

/// A thread of our own in a program that may be somebody else's: it takes no signals, which are for
/// the program's own threads, and has a name of at most 15 letters, as `top -H` shows it.
/// kUnavailable when the system refuses another thread.
Result<std::thread> startThread(const char* name, std::function<void()> run);

}  // namespace faultline
