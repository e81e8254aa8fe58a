#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <future>
#include <iostream>
#include <memory>
#include <thread>

#include "harness/nccl_bench/bench.h"
#include "harness/nccl_bench/ports.h"
#include "resilient_ccl/comm/bootstrap.h"

namespace {

using namespace faultline;  // NOLINT: the program's own main file
using namespace faultline::nccl_bench;

// For the others to start, and to end what they do when one of them has ended.
constexpr Duration kPatience = 30s;

// For calls to end that are given up; who ends the processes of a job waits little longer.
constexpr Duration kGiveUp = 1500ms;
constexpr int kSignalBase = 128;  // what shells add to a signal in an exit code

/// Ends the process, its calls first: kernels of a process that is gone, which wait for what does
/// not come, keep NVIDIA's multi-process service from its other clients. No orderly end: such a
/// kernel would keep it from ending, too.
[[noreturn]] void leave(Device& device, int code) {
  std::promise<void> ended;
  const std::future<void> end = ended.get_future();
  std::thread([&] {
    device.giveUp();
    ended.set_value();
  }).detach();
  (void)end.wait_for(kGiveUp);
  std::cout.flush();
  std::_Exit(code);
}

/// What a signal ends the process with.
class Departure {
 public:
  /// Before any other thread is there: they are to leave the signals alone.
  Departure() {
    ::sigemptyset(&signals_);
    for (const int signal : {SIGTERM, SIGINT}) ::sigaddset(&signals_, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    std::thread([this] {
      int signal = 0;
      while (::sigwait(&signals_, &signal) != 0) continue;
      if (const auto device = device_.load().lock()) leave(*device, kSignalBase + signal);
      std::_Exit(kSignalBase + signal);
    }).detach();
  }
  /// From now on, and as long as it is there, this one's calls are ended first.
  void of(const std::shared_ptr<Device>& device) { device_ = device; }

 private:
  ::sigset_t signals_{};
  std::atomic<std::weak_ptr<Device>> device_;
};

int fail(const Options& options, const Status& status) {
  std::cerr << "nccl_bench: rank " << options.rank << ": " << status.toString() << std::endl;
  return kExitFailed;
}

Result<std::unique_ptr<comm::Bootstrap>> meet(const Options& options) {
  comm::BootstrapOptions meeting;
  meeting.rank = options.rank;
  meeting.size = options.ranks;
  ASSIGN_OR_RETURN(meeting.address, transport::tcp::parseAddress(options.address));
  ASSIGN_OR_RETURN(meeting.rendezvous.address, transport::tcp::parseAddress(options.rootAddress));
  meeting.rendezvous.port = static_cast<std::uint16_t>(options.port);
  meeting.timeout = options.wait + kPatience;
  return comm::Bootstrap::connect(std::move(meeting));
}

int runRank(const Options& options, Departure& departure) {
  const auto meeting = meet(options);
  if (!meeting.ok()) return fail(options, meeting.status());
  const auto gpus = countGpus();
  if (!gpus.ok()) return fail(options, gpus.status());
  if (*gpus == 0) return fail(options, errorf(Code::kUnsupported, "there is no GPU"));
  auto opened = openGpu(options.gpu % *gpus, options.sweep.sizes.back());
  if (!opened.ok()) return fail(options, opened.status());
  const std::shared_ptr<Device> device = *std::move(opened);
  departure.of(device);
  const Exchange exchange = [&](const std::string& mine) { return (*meeting)->allGather(mine); };
  const auto wrong = runBench(options, *device, exchange, std::cout,
                              [&] { return anyPortDown(options.interfaces); });
  if (wrong.status().code() == Code::kAborted) {
    while (exchange("").ok()) continue;  // until the others have ended
    return kExitOk;
  }
  if (!wrong.ok()) {
    (void)fail(options, wrong.status());
    leave(*device, kExitFailed);
  }
  // Nobody leaves while another still has something to say.
  if (const auto ended = exchange(""); !ended.ok()) return fail(options, ended.status());
  return *wrong == 0 ? kExitOk : kExitWrong;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options =
      readOptions(argc, argv, [](const char* name) -> const char* { return std::getenv(name); });
  if (!options.ok()) {
    const bool help = options.status().code() == Code::kAborted;
    (help ? std::cout : std::cerr)
        << (help ? "" : "nccl_bench: ") << options.status().message() << '\n';
    return help ? kExitOk : kExitUsage;
  }
  try {
    static Departure departure;  // its thread outlives this function
    return runRank(*options, departure);
  } catch (const std::exception& error) {
    std::cerr << "nccl_bench: " << error.what() << '\n';
    return kExitFailed;
  }
}
