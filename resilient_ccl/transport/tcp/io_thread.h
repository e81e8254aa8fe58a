#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/own_process.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "resilient_ccl/transport/doorbell.h"
#include "resilient_ccl/transport/tcp/threaded_rail.h"

namespace faultline::transport::tcp {

/// A thread that sends and receives for the rails that are given to it. Like any thread it does not
/// survive a fork.
class IoThread {
 public:
  static Result<std::unique_ptr<IoThread>> start();
  /// Ends the thread; nobody serves its rails any more.
  ~IoThread();

  /// From now on this thread may serve the rail, and keeps it until it is fenced.
  void add(std::shared_ptr<ThreadedRail> rail);
  /// There is something to send.
  void wake() { bell_.ring(); }

  // What the thread watches a rail's socket for (events of epoll). Any thread.
  Status watch(ThreadedRail& rail, std::uint32_t events);
  void watchFor(ThreadedRail& rail, std::uint32_t events);
  void unwatch(int socket);

 private:
  IoThread() = default;
  Status open();
  void run();
  void adopt();
  bool serveAll();

  UniqueFd epoll_;
  OwnProcess process_;
  Doorbell bell_;
  std::vector<std::shared_ptr<ThreadedRail>> rails_;  // the thread's own
  std::atomic<bool> stopping_{false};
  std::atomic<bool> haveNew_{false};
  std::mutex mutex_;
  std::vector<std::shared_ptr<ThreadedRail>> newRails_;
  std::thread thread_;
};

}  // namespace faultline::transport::tcp
