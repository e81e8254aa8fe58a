#include "base/user_name.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace faultline {

std::string userName() {
  if (const char* const caller = std::getenv("SUDO_USER"); caller != nullptr) return caller;
  const passwd* const user = ::getpwuid(::getuid());
  return user != nullptr ? user->pw_name : fmt::format("{}", ::getuid());
}

}  // namespace faultline
