#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/verbs/message.h"
#include "injector/verbs/shim/shim.h"

namespace faultline::injector::verbs::shim {

/// Answers controllers over a Unix socket, in a thread of its own: one per process, from the first
/// open device on until the process ends. Serves the process's user and root. A fault belongs to
/// the connection that armed it: when that ends, or is silent for longer than the lease, it is
/// disarmed.
class Control {
 public:
  /// Starts it if it does not run. Says on stderr, once, why it cannot; the program goes on.
  static void ensure();
  // Around fork(), before Shim's mutex is taken and after it is given back. In the child the thread
  // does not exist, and what it had open is the parent's.
  static void beforeFork();
  static void afterForkInParent();
  static void afterForkInChild();
  /// At exit(): lets an answer that is being made go out, and tells each controller what has been
  /// counted of its faults. The socket's file goes with the process.
  static void farewell();

 private:
  struct Lease {
    std::uint64_t fault = 0;
    Duration length{};
    TimePoint end{};
  };
  struct Client {
    UniqueFd fd;
    TimePoint heard{};  ///< when it last said something, or came
    std::vector<Lease> leases{};
  };

  static Result<Control*> start();
  explicit Control(std::string path) : path_(std::move(path)) {}
  Status listen(const std::string& folder);
  /// Returns only when its descriptors are gone.
  void serve();
  /// Nobody can control this process any more: what is armed is disarmed.
  void abandon();
  int timeoutMs(bool soon, TimePoint at) const;
  void accept();
  /// Where there is none, the one that has been silent for longest of those who hold no fault goes:
  /// a connection that somebody has left open must not keep others out. False: all hold faults.
  bool makeRoom();
  /// False when the connection is to be closed.
  bool answer(Client& client);
  Result<Message> handle(Client& client, const Message& request);
  Result<Message> list(const Message& request);
  Result<Message> arm(Client& client, const Message& request);
  void disarmAll(Client& client);
  void endLeases(TimePoint now);
  void sayLast();

  std::string path_;
  pid_t pid_ = 0;
  UniqueFd listener_;
  UniqueFd wake_;
  std::vector<Client> clients_;
  TimePoint accept_from_{};  ///< until then who wants to connect waits: it could not be let in
  std::thread thread_;
  /// The thread's, except while it waits: what is forked then is whole.
  std::mutex serve_mutex_;
};

}  // namespace faultline::injector::verbs::shim
