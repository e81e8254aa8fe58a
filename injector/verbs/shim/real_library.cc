#include "injector/verbs/shim/real_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "injector/verbs/address.h"

namespace faultline::injector::verbs::shim {
namespace {

/// The program only gets errors, from whatever it calls.
void* missing(const std::string& why) {
  std::fprintf(stderr,
               "faultline-verbs: there is no libibverbs behind the shim, so that every call fails: "
               "%s\n",
               why.c_str());
  return nullptr;
}

void* load() {
  const char* const chosen = std::getenv(kLibraryVariable);
  const std::string name = chosen == nullptr || *chosen == '\0' ? kRealLibrary : chosen;
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return missing(::dlerror());
  void* const open = ::dlsym(handle, "ibv_open_device");
  if (open == nullptr) return missing(name + " is no libibverbs");
  // A shim that forwards to itself would call itself until the stack ends.
  Dl_info ours{};
  Dl_info theirs{};
  ::dladdr(open, &theirs);
  ::dladdr(reinterpret_cast<void*>(&load), &ours);
  return ours.dli_fbase == theirs.dli_fbase ? missing(name + " is the shim itself") : handle;
}

void* library() {
  static void* const loaded = load();  // for good: threads may outlive main
  return loaded;
}

}  // namespace

void* realFunction(const char* name, const char* version) {
  void* const real = library();
  if (real == nullptr) return nullptr;
  void* const found = ::dlvsym(real, name, version);
  return found != nullptr ? found : ::dlsym(real, name);
}

}  // namespace faultline::injector::verbs::shim
