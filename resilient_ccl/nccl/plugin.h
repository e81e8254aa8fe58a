#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/log.h"
#include "base/standard_descriptors.h"
#include "base/status.h"
#include "resilient_ccl/nccl/accounts.h"
#include "resilient_ccl/nccl/device.h"
#include "resilient_ccl/nccl/directory.h"
#include "resilient_ccl/nccl/last_closes.h"
#include "resilient_ccl/nccl/net_api.h"
#include "resilient_ccl/nccl/options.h"

namespace faultline::nccl {

class NcclSink;

/// What is behind NCCL's calls, whatever their version: one for the process, which begins with its
/// first communicator, ends with the last one, and may begin again. NCCL loads and unloads the
/// library as often, but its code and its counters stay (nodelete, see CMakeLists.txt). Errors are
/// logged (NCCL_DEBUG=WARN) and become NCCL's results.
class Plugin {
 public:
  static Plugin& instance();

  /// `hasEnd`: NCCL says when it is done with a communicator (`finalize`); version 10 does not.
  NetResult init(NetLogger log, bool hasEnd);
  /// One communicator is done; with the last one everything ends.
  NetResult finalize();
  /// The process ends: the same, whatever communicators there are, and of what NCCL has not closed
  /// nothing is read or written any more. Calls fail from then on, without a word.
  void leave();

  NetResult devices(int* count);
  /// Null when there is no such device, which has been logged. Valid until the next first
  /// communicator begins.
  const Device* device(int number);
  NetResult listen(int device, void* handle, void** listener);
  NetResult connect(int device, void* handle, void** connection);
  NetResult accept(void* listener, void** connection);
  NetResult closeListen(void* listener);
  static NetResult registerMemory(int type, void* data, void** region);
  NetResult isend(void* connection, void* data, std::size_t size, int tag, void** request);
  NetResult irecv(void* connection, int count, void** data, const std::size_t* sizes,
                  const int* tags, void** request);
  NetResult test(void* request, int* done, int* sizes);
  /// Without an end that is told, the last one to a process waits until what was copied has been
  /// delivered, as long as LastCloses says and while nobody connects to it anew: a process may end
  /// without its destructors (Python's multiprocessing, with _exit).
  NetResult close(void* connection);

  static constexpr Duration kLastClose = 1s;
  /// A peer that listens acknowledges within a fraction of this.
  static constexpr Duration kLeastLastClose = 20ms;

  /// The process is a child that was forked off: it has none of this.
  void forked() { gone_ = true; }

 private:
  Status start();
  /// What has ended, with the connections that NCCL has not closed.
  std::unique_ptr<Directory> end();
  void writeFiles(const Accounts& accounts, Sync sync);
  NetResult resultOf(const Status& status) const;
  /// `call(directory)` while there is one: the end waits for calls that are under way.
  template <typename Call>
  NetResult withDirectory(Call call);
  bool isDevice(int number) const;
  void awaitDelivery(Pair& pair);

  std::mutex mutex_;  // of beginning and ending
  int communicators_ = 0;
  std::atomic<bool> gone_ = false;  // this process was forked off, or is about to end
  std::atomic<bool> hasEnd_ = true;
  std::optional<StandardDescriptors> standard_;  // while there is a communicator
  Options options_;
  std::mutex present_;  // of devices and directory, which begin and end while other threads call
  std::vector<Device> devices_;
  std::unique_ptr<Directory> directory_;
  int ioThreads_ = 0;
  std::shared_ptr<NcclSink> ncclsLog_;   // null: it has none
  std::shared_ptr<spdlog::logger> log_;  // outlives spdlog: threads may log until the end
  Accounts accounts_;                    // of all lives that have ended
  std::mutex closing_;
  LastCloses lastCloses_{kLastClose, kLeastLastClose};
};

}  // namespace faultline::nccl
