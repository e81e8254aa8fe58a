#pragma once

#include <atomic>

namespace faultline::injector::verbs::shim {

/// The address of a function of the real libibverbs, loaded at the first call; nullptr when there
/// is none. When the whole library is missing that call says why, on stderr. Safe from any thread.
void* realFunction(const char* name, const char* version);

/// One function of the real library, looked up once.
template <typename Function>
class Real {
 public:
  constexpr Real(const char* name, const char* version) : name_(name), version_(version) {}

  /// nullptr when the real library does not have it.
  Function* get() {
    void* found = address_.load(std::memory_order_acquire);
    if (found == nullptr) {
      found = realFunction(name_, version_);
      address_.store(found, std::memory_order_release);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* name_;
  const char* version_;
  std::atomic<void*> address_{nullptr};
};

}  // namespace faultline::injector::verbs::shim
