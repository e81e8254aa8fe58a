// net_peer LIBRARY VERSION FOLDER SIDE [--seconds S] [--bytes N] [--connections N] [--late S]
// [--group N] [--fork 1] [--first D] [--leave 1|2] [--abort 1] [--quit 1] [--meeting NAME]
// [--next NAME]: one process of two (sides
// 0 and 1) that talk to each other through the NCCL plugin, as NCCL's proxies do. They find each
// other's handles in files of FOLDER. Connections in both directions carry messages of up to
// `bytes` for `seconds` or until there is a file "stop" in FOLDER. `late`: after that it receives
// nothing for so long; there is a file "sentSIDE" in FOLDER once all that it sends is done.
// `group`: each receive is of so many messages, each with its tag. `first`: the device of the first
// connection; of the next ones those behind it. `fork`: a child like a data loader's lives beside
// it, with copies of all its sockets. `leave`: at that end the program ends, like one that has
// thrown, with whatever is under way; `leave 2`: while a thread goes on calling the plugin.
// `abort`: meanwhile other communicators begin and are aborted. `quit`: when its connections are
// closed the process is gone at once, as those of Python's multiprocessing. `meeting`: before the
// names of the files by which they find each other. `next`: it is side 0 of another such meeting,
// too, with a third process. When a call fails, everything is closed, as NCCL does. Prints "ready",
// then at the end "ok MESSAGES LONGEST_PAUSE_MS ABORTED WARNINGS", or "error RESULT WARNINGS";
// exit 1.

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "tests/support/net_aborts.h"
#include "tests/support/net_conversation.h"
#include "tests/support/net_driver.h"

namespace faultline::test {
namespace {

int failed(const std::string& what) {
  std::cout << "error " << what;
  for (const std::string& line : NetDriver::warnings()) std::cout << " | " << line;
  std::cout << std::endl;
  return 1;
}
int failed(NetResult result) { return failed(std::to_string(static_cast<int>(result))); }

/// Ends with its parent.
void startChild() {
  if (fork() != 0) return;
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) pause();
}

int run(int argc, char** argv) {
  if (argc < 5) return 2;
  const int version = std::atoi(argv[2]);
  const std::filesystem::path folder = argv[3];
  const int side = std::atoi(argv[4]);
  double seconds = 1, late = 0;
  std::size_t bytes = 100'000;
  int connections = 2, group = 1, first = 0;
  std::string name, next;
  int leaves = 0;
  bool forks = false, aborts = false, quits = false;
  for (int i = 5; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--late") == 0) late = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--bytes") == 0) bytes = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--connections") == 0) connections = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--group") == 0) group = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--first") == 0) first = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--fork") == 0) forks = std::atoi(argv[i + 1]) != 0;
    if (std::strcmp(argv[i], "--leave") == 0) leaves = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--abort") == 0) aborts = std::atoi(argv[i + 1]) != 0;
    if (std::strcmp(argv[i], "--meeting") == 0) name = argv[i + 1];
    if (std::strcmp(argv[i], "--next") == 0) next = argv[i + 1];
    if (std::strcmp(argv[i], "--quit") == 0) quits = std::atoi(argv[i + 1]) != 0;
  }
  NetDriver net(argv[1], version);
  if (!net.error().empty()) return failed(net.error());
  if (const NetResult begun = net.init(); begun != NetResult::kSuccess) return failed(begun);

  Conversation conversation(net, bytes, group);
  std::vector<Meeting> meetings{
      {.folder = folder, .name = name, .side = side, .connections = connections, .first = first}};
  if (!next.empty()) {
    meetings.push_back(
        {.folder = folder, .name = next, .side = 0, .connections = connections, .first = first});
  }
  for (const Meeting& meeting : meetings) {
    const auto met = meet(net, meeting, conversation, [] { return false; });
    if (!met) return 2;
    if (*met != NetResult::kSuccess) return failed(*met);
  }
  if (forks) startChild();
  Aborts others(argv[1], version, folder, side);
  if (aborts) others.start();
  std::cout << "ready" << std::endl;

  TimePoint end = now() + fromSeconds(seconds), look = now();
  std::thread leaving;
  bool told = late == 0;
  while (!conversation.over()) {
    const TimePoint time = now();
    if (!told && conversation.sent()) {
      told = true;
      std::ofstream(folder / fmt::format("sent{}", side));
    }
    if (leaves == 1 && time >= end) std::exit(0);  // nothing is closed, and all of it still there
    if (leaves == 2 && time >= end) {
      leaves = 0;
      end = look = TimePoint::max();  // goes on as before
      leaving = std::thread([] { std::exit(0); });
    }
    if (time < end && time >= look) {
      look = time + 10ms;
      if (std::filesystem::exists(folder / "stop")) end = time;
    }
    const bool receiving = time < end || time >= end + fromSeconds(late);
    const NetResult result = conversation.step(time >= end, receiving);
    if (result != NetResult::kSuccess) {
      if (leaving.joinable()) pause();  // until the process is gone
      others.stop();
      conversation.close();
      return failed(result);
    }
  }
  others.stop();
  conversation.close();
  if (!quits) (void)net.finalize();
  if (!others.error().empty()) return failed(others.error());
  if (conversation.wrong() > 0) return failed("wrong " + std::to_string(conversation.wrong()));
  std::cout << "ok " << conversation.messages() << " "
            << toMilliseconds(conversation.longestPause()) << " " << others.count();
  for (const std::string& line : NetDriver::warnings()) std::cout << " | " << line;
  if (std::getenv("NET_PEER_INFORMATION") != nullptr) {
    for (const std::string& line : NetDriver::informations()) std::cout << " | " << line;
  }
  std::cout << std::endl;
  if (quits) _exit(0);
  return 0;
}

}  // namespace
}  // namespace faultline::test

int main(int argc, char** argv) { return faultline::test::run(argc, argv); }
