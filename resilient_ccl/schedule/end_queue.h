#pragma once

#include <utility>
#include <vector>

#include "resilient_ccl/schedule/index.h"

namespace faultline::schedule {

/// Which of many flows ends first, when ends keep changing: a heap in which each flow has one entry
/// that is moved, so that it holds no more than there are flows. Of equal times the lower flow.
class EndQueue {
 public:
  bool empty() const { return heap_.empty(); }
  int flow() const { return heap_.front().second; }
  double time() const { return heap_.front().first; }

  /// Adds the flow or moves it to another time.
  void set(int flow, double time) {
    if (at(flow) >= place_.size()) place_.resize(at(flow) + 1, kNowhere);
    if (place_[at(flow)] == kNowhere) {
      heap_.push_back({time, flow});
      up(heap_.size() - 1);
      return;
    }
    const std::size_t place = place_[at(flow)];
    heap_[place].first = time;
    down(up(place));
  }

  /// Removes a flow that is there.
  void remove(int flow) {
    const std::size_t place = std::exchange(place_[at(flow)], kNowhere);
    const Entry last = heap_.back();
    heap_.pop_back();
    if (place == heap_.size()) return;
    heap_[place] = last;
    down(up(place));
  }

 private:
  using Entry = std::pair<double, int>;
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  std::size_t up(std::size_t place) {
    const Entry moved = heap_[place];
    for (std::size_t parent; place > 0 && moved < heap_[parent = (place - 1) / 2]; place = parent) {
      put(place, heap_[parent]);
    }
    put(place, moved);
    return place;
  }

  void down(std::size_t place) {
    const Entry moved = heap_[place];
    for (std::size_t child; (child = 2 * place + 1) < heap_.size(); place = child) {
      if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
      if (moved < heap_[child]) break;
      put(place, heap_[child]);
    }
    put(place, moved);
  }

  void put(std::size_t place, const Entry& entry) {
    heap_[place] = entry;
    place_[at(entry.second)] = place;
  }

  std::vector<Entry> heap_;
  std::vector<std::size_t> place_;  ///< of each flow in the heap
};

}  // namespace faultline::schedule
