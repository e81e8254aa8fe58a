#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {

/// Busy threads on every CPU that this program may use. Evidence: on every CPU a probe thread of
/// normal priority, which always wants to run, had to wait most of the time, while the busy threads
/// ran.
class HostOverload final : public Fault {
 public:
  HostOverload(const FaultParameters& parameters, const netlink::LinkTarget& target);
  ~HostOverload() override;
  Status prepare() override;
  Status apply() override;
  Status step(TimePoint now) override;
  Status revert() override;
  std::string mechanism() const override {
    return "busy threads of another priority, pinned to every CPU";
  }
  Duration evidenceBudget() const override;

 protected:
  bool conclusive() const override;
  Evidence verdict() const override;

 private:
  /// A thread that sleeps, or works without end. Its destructor ends and joins it.
  class Worker;
  /// What one CPU gave to whom since the probe began.
  struct Cpu {
    int number = 0;
    std::vector<std::unique_ptr<Worker>> busy;
    std::unique_ptr<Worker> probe;
    Duration busy_before{};
    Duration probe_before{};
    double waited = 0;  ///< share of the time in which the probe had to wait
    double taken = 0;   ///< share that the busy threads had
  };

  static Duration busyTime(const Cpu& cpu);
  void setProbing(bool on, TimePoint now);

  int threads_;
  int nice_;
  std::vector<Cpu> cpus_;
  bool applied_ = false;
  bool probing_ = false;
  TimePoint since_{};
  Duration window_{};
};

}  // namespace faultline::injector
