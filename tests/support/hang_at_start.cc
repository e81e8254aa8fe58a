#include <signal.h>

#include <cstdlib>
#include <cstring>

// Preloaded into a program and all that it starts: of these, the one whose first argument is
// $FAULTLINE_TEST_HANGS stops before its main does anything, as if its machine took no notice of
// it. Only SIGKILL ends it.

namespace {

__attribute__((constructor)) void hangAtStart(int argc, char** argv, char** /*environment*/) {
  const char* const which = std::getenv("FAULTLINE_TEST_HANGS");
  if (which != nullptr && argc > 1 && std::strcmp(argv[1], which) == 0) (void)::raise(SIGSTOP);
}

}  // namespace
