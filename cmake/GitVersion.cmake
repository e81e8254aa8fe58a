# Run at build time: writes OUTPUT (version.cc) with the commit that SOURCE_DIR is at, and touches
# it only when the text changes, so that nothing is rebuilt without need.
find_program(GIT git)
set(commit "")
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(commit AND changes)
    string(APPEND commit "-dirty")
  endif()
endif()
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#include "base/version.h"

namespace faultline {

std::string_view versionNumber() { return "@VERSION@"; }
std::string_view gitCommit() { return "@commit@"; }

}  // namespace faultline
]] @ONLY)
