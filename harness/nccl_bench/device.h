#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "harness/workload/collective/job/collective_buffers.h"

namespace faultline::nccl_bench {

/// What calls collectives: one rank's GPU with its communicator. Not thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  /// Of the library, for the head of the table: "2.28.9".
  virtual std::string libraryVersion() const = 0;
  /// Name and PCI address of the GPU, for people.
  virtual std::string name() const = 0;
  /// Equal for ranks that share it, different for GPUs of different machines.
  virtual std::string identity() const = 0;

  /// What one rank makes and all ranks join with.
  virtual Result<std::string> newCommunicatorId() = 0;
  /// Becomes a rank of a new communicator; returns when all are.
  virtual Status join(const std::string& communicatorId, int rank, int ranks) = 0;

  /// Copies input and poisoned result of the prepared call.
  virtual Status upload(workload::CollectiveBuffers& buffers) = 0;
  /// Calls what was uploaded; it runs behind the calls before it.
  virtual Status launch(const workload::CollectiveBuffers& buffers) = 0;
  /// Whether all that was launched is done. An error is final: of this communicator nothing ends
  /// any more.
  virtual Result<bool> done() = 0;
  virtual Status download(workload::CollectiveBuffers& buffers) = 0;

  /// Gives the communicator up, whatever it is doing. After that, `join` again.
  virtual Status abort() = 0;
  /// Called by all ranks but those of `without`, which abort: a communicator of them takes the
  /// place of the one that there is, whatever that is doing. They keep their order.
  virtual Status shrink(const std::vector<int>& without) = 0;

  /// Ends the calls that run, from any thread and whatever another one is doing; it may take as
  /// long as that does. Nothing else is to be called after it.
  virtual void giveUp() = 0;
};

/// This process's GPU `ordinal` with NCCL, with memory for the largest result and input. The
/// errors are those of CUDA, and say which call failed.
Result<std::unique_ptr<Device>> openGpu(int ordinal, Bytes largest);
/// GPUs that this process sees.
Result<int> countGpus();

}  // namespace faultline::nccl_bench
