#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "injector/verbs/shim/address_hash.h"

namespace faultline::injector::verbs::shim {

/// Finds entries by an address, and a number in it, without a lock. Insert and remove from one
/// thread at a time; a removed entry, which was in it, may still be in use by readers until
/// Readers::wait() has returned. Entry has `next` (std::atomic<Entry*>), `place(bits)` and
/// `is(key...)`; the table does not own it.
template <typename Entry>
class AddressTable {
 public:
  template <typename Address, typename... Number>
  Entry* find(const Address* address, Number... number) const {
    const std::size_t place = placeOf(address, kIndexBits, number...);
    for (Entry* at = buckets_[place].load(); at != nullptr; at = at->next.load()) {
      if (at->is(address, number...)) return at;
    }
    return nullptr;
  }

  void insert(Entry& entry) {
    std::atomic<Entry*>& bucket = buckets_[entry.place(kIndexBits)];
    entry.next.store(bucket.load());
    bucket.store(&entry);
  }

  void remove(Entry& entry) {
    std::atomic<Entry*>* link = &buckets_[entry.place(kIndexBits)];
    while (link->load() != &entry) link = &link->load()->next;
    link->store(entry.next.load());
  }

 private:
  static constexpr unsigned kIndexBits = 12;
  std::array<std::atomic<Entry*>, std::size_t{1} << kIndexBits> buckets_{};
};

}  // namespace faultline::injector::verbs::shim
