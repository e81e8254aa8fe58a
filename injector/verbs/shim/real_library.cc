#include "injector/verbs/shim/real_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "injector/verbs/address.h"

namespace faultline::injector::verbs::shim {
namespace {

struct Library {
  void* handle = nullptr;
  std::string problem;
};

Library load() {
  const char* const chosen = std::getenv(kLibraryVariable);
  const std::string name = chosen == nullptr || *chosen == '\0' ? kRealLibrary : chosen;
  Library library;
  library.handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle == nullptr) {
    const char* const message = ::dlerror();
    library.problem = message == nullptr ? name + " cannot be loaded" : message;
    return library;
  }
  // A shim that forwards to itself would call itself until the stack ends.
  Dl_info ours{};
  Dl_info theirs{};
  void* const open = ::dlsym(library.handle, "ibv_open_device");
  const bool known = open != nullptr && ::dladdr(open, &theirs) != 0 &&
                     ::dladdr(reinterpret_cast<void*>(&load), &ours) != 0;
  if (!known || ours.dli_fbase == theirs.dli_fbase) {
    library.handle = nullptr;
    library.problem = name + (known ? " is the shim itself" : " is no libibverbs");
  }
  return library;
}

const Library& library() {
  static const Library* const loaded = new Library(load());  // for good: threads may outlive main
  return *loaded;
}

}  // namespace

void* realFunction(const char* name, const char* version) {
  const Library& real = library();
  if (real.handle == nullptr) return nullptr;
  void* const found = ::dlvsym(real.handle, name, version);
  return found != nullptr ? found : ::dlsym(real.handle, name);
}

Status realLibrary() {
  if (library().handle != nullptr) return okStatus();
  return errorf(Code::kUnavailable, "load the real libibverbs: {}", library().problem);
}

}  // namespace faultline::injector::verbs::shim
