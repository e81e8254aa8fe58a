#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace faultline::injector::verbs::shim {

/// Finds entries by a key without a lock. Insert and remove from one thread at a time; a removed
/// entry, which was in it, may still be in use by readers until Readers::wait() has returned. Entry
/// has `next` (std::atomic<Entry*>), `hash()` and `is(key...)`; the table does not own it.
template <typename Entry>
class AddressTable {
 public:
  template <typename... Key>
  Entry* find(std::uint64_t hash, const Key&... key) const {
    for (Entry* at = buckets_[hash % kBuckets].load(); at != nullptr; at = at->next.load()) {
      if (at->is(key...)) return at;
    }
    return nullptr;
  }

  void insert(Entry& entry) {
    std::atomic<Entry*>& bucket = buckets_[entry.hash() % kBuckets];
    entry.next.store(bucket.load());
    bucket.store(&entry);
  }

  void remove(Entry& entry) {
    std::atomic<Entry*>* link = &buckets_[entry.hash() % kBuckets];
    while (link->load() != &entry) link = &link->load()->next;
    link->store(entry.next.load());
  }

 private:
  static constexpr std::size_t kBuckets = 4096;
  std::array<std::atomic<Entry*>, kBuckets> buckets_{};
};

inline std::uint64_t hashOf(const void* address, std::uint64_t more = 0) {
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  constexpr unsigned kMixed = 40;  // the upper bits are
  return ((reinterpret_cast<std::uintptr_t>(address) ^ more) * kGoldenRatio) >> kMixed;
}

}  // namespace faultline::injector::verbs::shim
