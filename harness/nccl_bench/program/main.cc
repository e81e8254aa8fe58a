#include <cstdlib>
#include <exception>
#include <iostream>

#include "harness/nccl_bench/bench.h"
#include "harness/nccl_bench/ports.h"
#include "resilient_ccl/comm/bootstrap.h"

namespace {

using namespace faultline;  // NOLINT: the program's own main file
using namespace faultline::nccl_bench;

// For the others to start, and to end what they do when one of them has ended.
constexpr Duration kPatience = 30s;

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

int runRank(const Options& options) {
  const auto meeting = meet(options);
  if (!meeting.ok()) return fail(options, meeting.status());
  const auto gpus = countGpus();
  if (!gpus.ok()) return fail(options, gpus.status());
  if (*gpus == 0) return fail(options, errorf(Code::kUnsupported, "there is no GPU"));
  const auto device = openGpu(options.gpu % *gpus, options.sweep.sizes.back());
  if (!device.ok()) return fail(options, device.status());
  const Exchange exchange = [&](const std::string& mine) { return (*meeting)->allGather(mine); };
  const auto wrong = runBench(options, **device, exchange, std::cout,
                              [&] { return anyPortDown(options.interfaces); });
  if (wrong.status().code() == Code::kAborted) {
    while (exchange("").ok()) continue;  // until the others have ended
    return kExitOk;
  }
  if (!wrong.ok()) {
    // A kernel that waits for what does not come would keep an orderly end from ending.
    (void)fail(options, wrong.status());
    std::cout.flush();
    std::_Exit(kExitFailed);
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
    return runRank(*options);
  } catch (const std::exception& error) {
    std::cerr << "nccl_bench: " << error.what() << '\n';
    return kExitFailed;
  }
}
