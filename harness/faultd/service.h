#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "harness/control/interrupt.h"
#include "harness/faultd/client.h"
#include "harness/faultd/left_schedule.h"
#include "harness/launch/process.h"
#include "injector/safety/journal.h"

namespace faultline::faultd {

struct ServiceOptions {
  std::string socket{wire::kServiceSocket};
  std::string policy{safety::kPolicyPath};
  std::string journal{safety::kJournalPath};
};

/// The fault service of a host (docs/safety.md): strikes for those whom the policy lets ask, each
/// in a process of its own, and undoes what was left by whomever. It waits for nobody: what takes
/// time is done by children (helpers.h). To be used on the main thread, while there is no other.
class Service {
 public:
  /// kAlreadyExists, with the number of the other one, where a service has this socket or journal.
  static Result<Service> start(const ServiceOptions& options);

  /// Until SIGTERM, SIGINT or SIGHUP; then takes back all that it holds. kNotRestored when some of
  /// that is left.
  Status serve();

 private:
  Service(ServiceOptions options, safety::Journal journal, run::Interrupt interrupt)
      : options_(std::move(options)),
        journal_(std::move(journal)),
        interrupt_(std::move(interrupt)) {}

  /// A child that undoes an entry.
  struct Undoing {
    launch::Process process;
    TimePoint until;  ///< then it hangs, and is killed
  };

  void wait();
  void accept();
  void makeRoomFor(uid_t uid);
  void dropOldest(const std::function<bool(const Client&)>& which);
  /// Why nobody may be served for this user; ok: one may, and somebody else may have had to go.
  Status mayServe(uid_t uid);
  /// Ends one that the policy has not let yet; false: there is none.
  bool displaceOne();
  void serveClients();
  /// For what others have left.
  void look();
  void reapUndoing();
  void startUndoing(const std::string& id);
  void logOnce(const std::string& line);
  void beginToEnd();

  ServiceOptions options_;
  safety::Journal journal_;
  run::Interrupt interrupt_;
  UniqueFd claimed_journal_;
  UniqueFd claimed_socket_;
  UniqueFd listening_;
  std::vector<std::unique_ptr<Client>> clients_;
  LeftSchedule schedule_;
  std::map<std::string, Undoing> undoing_;  ///< by the entry
  TimePoint next_look_{};
  std::set<std::string> told_;  ///< lines of the log
  bool more_ = false;           ///< a client has more to say already
  bool ending_ = false;
};

}  // namespace faultline::faultd
