#pragma once

#include <csignal>

namespace faultline::testing {

/// In a child, before it executes a program that is to be interrupted: what runs the tests may
/// ignore these signals, and the program would go on doing so.
inline void takeSignalsAsUsual() {
  for (const int number : {SIGINT, SIGHUP, SIGQUIT}) std::signal(number, SIG_DFL);
}

}  // namespace faultline::testing
