#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/give_up.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "harness/launch/message_channel.h"
#include "harness/launch/process.h"
#include "harness/site/agents.h"
#include "harness/site/holder_line.h"
#include "harness/site/rdma_vm/frame_switch.h"
#include "harness/site/rdma_vm/guest_files.h"
#include "harness/site/rdma_vm/guest_setup.h"
#include "harness/site/rdma_vm/qmp.h"
#include "harness/site/rdma_vm/rail_line.h"
#include "harness/site/rdma_vm/vm_plan.h"

namespace faultline::rdma_vm {

/// A program to be run on a host, with what it prints brought back.
struct RunRequest {
  /// arguments[0] is looked for on the PATH of this process, as the guests have its files.
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment{};  ///< besides PATH, HOME and LANG of a guest
  std::string workingDirectory{};                    ///< empty: /
  /// When it is over the program gets SIGTERM, and SIGKILL a little later.
  Duration limit = kLimit;
  static constexpr Duration kLimit = 60s;
};

/// How it went.
struct RunOutput {
  launch::ExitStatus exit;  ///< of one that ended with its guard: SIGKILL
  bool timedOut = false;    ///< it was ended, because its limit was over
  std::string out;
  std::string err;
  std::string problem{};  ///< why its guard ended before it; empty: it did not
};

/// Hosts with RDMA on a machine that has none: guests of qemu, in software, with Debian's kernel,
/// an rxe device on each rail and this machine's files. Programs that are not ours run in them as
/// they are. Everything dies with this object and with this process, however it dies, and nothing
/// of it is in the file system.
///
/// Needs the right to make process namespaces (launch::enterPrivileges()). Make it on the main
/// thread: what it starts dies with the thread that started it. Not thread-safe.
class Laboratory final : public site::HolderLine, public RailLine {
 public:
  struct Files {
    std::string program;  ///< the faultline program, which is also what runs inside
    std::string qemu;
    KernelFiles kernel;
  };
  /// Those of this machine, with the program that runs now; kUnsupported, with what to do.
  static Result<Files> findFiles();

  /// Boots all hosts, and returns when every rxe port of every host is active. Errors tell the end
  /// of the console of the host that failed. `giveUp` is asked by it, and from then on by all that
  /// waits for a host: kAborted.
  static Result<std::unique_ptr<Laboratory>> boot(const VmSpec& spec, const Files& files,
                                                  const GiveUp& giveUp = {});
  ~Laboratory() override;

  const VmSpec& spec() const { return spec_; }
  /// Of the guests: "6.1.0-56-amd64".
  const std::string& guestKernel() const { return guestKernel_; }

  /// Runs one program, or one on each of several hosts at the same time, and waits for the last
  /// end. An error is the laboratory's, or that of a program that cannot be run: what one does is
  /// in its output. Given up, all are ended at once (SIGTERM, and soon SIGKILL), and their output
  /// is what they have printed by then; kAborted when the hosts do not tell.
  Result<RunOutput> run(int host, const RunRequest& request);
  struct HostRequest {
    int host = 0;
    RunRequest request;
  };
  Result<std::vector<RunOutput>> runAll(const std::vector<HostRequest>& requests);

  /// Starts a program and does not wait: to break something while it runs.
  Result<int> start(int host, const RunRequest& request);
  /// Waits for the end of what was started.
  Result<RunOutput> finish(int job);
  bool hasEnded(int job) const;
  /// Ends it before its time: SIGTERM, and SIGKILL a little later. finish() still has to be called.
  Status end(int job);

  /// For what else runs on the hosts: guards with programs whose files are in the shared folder.
  site::Agents& agents() { return agents_; }

  // Faults inside of guests.
  Result<int> startFault(int host, const wire::HeldFault& fault) override;
  Status tellFault(int fault, const wire::ToHolder& message) override {
    return agents_.tellFault(fault, message);
  }
  std::optional<wire::FromHolder> faultSaid(int fault) override { return agents_.faultSaid(fault); }
  Status endFault(int fault) override { return agents_.endFault(fault); }
  Status listen(Duration timeout) override { return poll(timeout); }

  /// Takes in what has come, and waits for at most `timeout` when nothing has. An error when a host
  /// is gone.
  Status poll(Duration timeout);

  // Faults from outside.
  Status setCable(int host, int rail, bool plugged) override;
  void setBlocked(int host, int rail, bool blocked) override;
  const SwitchPort& port(int host, int rail) const override { return ports_.at(host, rail + 1); }
  Result<std::vector<wire::RailState>> railStates(int host) override;
  Status askForRails(int host) override;
  std::optional<std::vector<wire::RailState>> toldRails(int host) const override {
    return agents_.toldRails(host);
  }

  /// How far the guests' clocks may be from what is taken for them; each job's times are those of
  /// this process's clock.
  Duration clockError() const { return agents_.clockError(); }

  /// The end of what the guest's kernel has printed.
  std::string consoleTail(int host) const;

 private:
  struct Host {
    launch::MessageChannel booting;  // until its guest is ready; its agent has it then
    QmpClient qmp;
    UniqueFd console;
  };
  struct Job {
    int host = 0;
    bool refused = false;
    bool begun = false;
    std::string problem{};  // why its guard ended early, or was refused; empty: it did not
    std::optional<launch::ExitStatus> exit{};
    std::optional<RunOutput> output{};
    TimePoint deadline{};
    bool timedOut = false;
    std::optional<TimePoint> endingSince{};
    bool over() const { return refused || output.has_value(); }
  };

  Laboratory(const VmSpec& spec, SwitchPorts ports, launch::Process room)
      : spec_(spec),
        ports_(std::move(ports)),
        room_(std::move(room)),
        agents_(
            [this](int host, const std::string& what, bool lives) {
              return lives ? brokenHost(host, what) : lostHost(host, what);
            },
            kPatience) {
    agents_.alsoHear(room_.messages().fd(), [this] { return lookAtRoom(); });
  }
  // A guest in software, on a busy machine, is slow.
  static constexpr Duration kPatience = 10s;

  Status awaitReady();
  Status unlessGivenUp(int host, std::string_view what) const;
  Status lookAtRoom();
  Status lookAtBootingHost(int host);
  /// Why that host is gone: the machine room knows, a little later. Never ok.
  Status lostHost(int host, const std::string& what);
  /// What guards of ours have said.
  void lookAtJobs();
  void guardMessage(Job& job, const wire::FromGuard& message);
  Status enforceLimits();
  Status endWhatIsGivenUp();
  Status brokenHost(int host, const std::string& what) const;
  Status checkHost(int host) const;

  VmSpec spec_;
  SwitchPorts ports_;
  launch::Process room_;
  std::vector<Host> hosts_;
  std::string guestKernel_;
  std::map<int, Job> jobs_;  // by their numbers at the agents
  int nextOutput_ = 1;
  std::optional<TimePoint> givenUp_;
  site::Agents agents_;
};

}  // namespace faultline::rdma_vm
