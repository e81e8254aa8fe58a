// net_peer LIBRARY VERSION FOLDER SIDE [--seconds S] [--bytes N] [--connections N] [--late S]
// [--group N] [--fork 1] [--first D] [--leave 1] [--abort 1]: one process of two (sides 0 and 1) that talk to
// each other through the NCCL plugin, as NCCL's proxies do. They find each other's handles in files
// of FOLDER. Connections in both directions carry messages of up to `bytes`, eight receives under
// way on each, whose every byte is checked, for `seconds` or until there is a file "stop" in
// FOLDER. `late`: after that it receives nothing for so long. `group`: each receive is of so many
// messages, each with its tag. `first`: the device of the first connection; of the next ones those
// behind it. `fork`: a child like a data loader's lives beside it, with copies of all its sockets.
// `leave`: after `seconds` the program ends, like one that has thrown, with whatever is under way.
// `abort`: meanwhile a thread of its own begins one communicator after another with the other side,
// which talk like the first and are aborted, by the sides in turn, with messages under way.
// Prints "ready", then at the end "ok MESSAGES LONGEST_PAUSE_MS ABORTED", or "error RESULT
// WARNINGS"; exit 1.

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "net_driver.h"

namespace faultline::test {
namespace {

constexpr int kUnderWay = 8;  // NCCL_STEPS
constexpr int kTag = 5;       // of the first of a group
constexpr int kMostInGroup = 8;
constexpr std::uint64_t kAhead =
    100;  // messages after the end, which may come before it at the peer

int failed(const std::string& what) {
  std::cout << "error " << what;
  for (const std::string& line : NetDriver::warnings()) std::cout << " | " << line;
  std::cout << std::endl;
  return 1;
}
int failed(NetResult result) { return failed(std::to_string(static_cast<int>(result))); }

using Bytes128 = std::array<std::byte, nccl::kNetHandleBytes>;

/// Whole files appear at once.
void publish(const std::filesystem::path& file, const std::vector<Bytes128>& handles) {
  const std::filesystem::path draft = file.string() + ".draft";
  std::ofstream out(draft, std::ios::binary);
  for (const Bytes128& handle : handles) {
    out.write(reinterpret_cast<const char*>(handle.data()), handle.size());
  }
  out.close();
  std::filesystem::rename(draft, file);
}

bool await(const std::filesystem::path& file, std::vector<Bytes128>& handles,
           const std::function<bool()>& stops) {
  const TimePoint deadline = now() + 20s;
  while (!std::filesystem::exists(file)) {
    if (now() > deadline || stops()) return false;
    std::this_thread::sleep_for(1ms);
  }
  std::ifstream in(file, std::ios::binary);
  for (Bytes128& handle : handles) {
    in.read(reinterpret_cast<char*>(handle.data()), handle.size());
  }
  return bool(in);
}

std::byte valueOf(std::uint64_t message, std::size_t at) {
  return static_cast<std::byte>(message * 31 + at * 7 + (at >> 8));
}

/// Messages differ in length, and every so often one is empty.
std::size_t lengthOf(std::uint64_t message, std::size_t most) {
  return message % 17 == 3 ? 0 : most - message * 977 % (most / 2);
}

struct Slot {
  void* request = nullptr;
  std::vector<std::byte> data;
};

struct Stream {
  void* connection = nullptr;
  bool sends = false;
  std::deque<Slot> open{};
  std::uint64_t posted = 0;  // messages; of a stream that sends
  std::uint64_t done = 0;    // messages, or groups of them
  TimePoint latest{};
  Duration longestPause{};
  std::uint64_t lastFrom = 0;  // its messages from this one on are of one byte; 0: not known yet
  int last = 0;  // messages, or groups of them, of one byte: as many as are under way at the end
};

class Conversation {
 public:
  Conversation(NetDriver& net, std::size_t bytes, int group)
      : net_(net), bytes_(bytes), group_(group) {}

  std::vector<Stream> streams;
  std::uint64_t wrong = 0;

  /// One round over all streams. At the end of each are messages of one byte, one for every receive
  /// that waits.
  NetResult step(bool ending, bool receiving) {
    for (Stream& stream : streams) {
      if (!stream.sends && !receiving) continue;
      const NetResult result = stream.sends ? send(stream, ending) : receive(stream);
      if (result != NetResult::kSuccess) return result;
    }
    return NetResult::kSuccess;
  }
  /// Messages, or groups of them, of the stream that has had fewest.
  std::uint64_t received() const {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (const Stream& stream : streams) {
      if (!stream.sends) least = std::min(least, stream.done);
    }
    return least;
  }
  bool over() const {
    return std::ranges::all_of(streams, [&](const Stream& stream) {
      return stream.last == (stream.sends ? kUnderWay * group_ : kUnderWay) && stream.open.empty();
    });
  }

 private:
  NetResult send(Stream& stream, bool ending) {
    const int most = kUnderWay * group_;
    if (ending && stream.lastFrom == 0) {
      // A group is of messages of one byte, or has none of them.
      stream.lastFrom = (stream.posted / group_ + kAhead) * group_;
    }
    const bool last = ending && stream.posted >= stream.lastFrom;
    if (static_cast<int>(stream.open.size()) < most && stream.last < most) {
      Slot slot;
      slot.data.resize(last ? 1 : lengthOf(stream.posted, bytes_));
      for (std::size_t i = 0; i < slot.data.size(); ++i) {
        slot.data[i] = valueOf(stream.posted, i);
      }
      const NetResult result =
          net_.isend(stream.connection, slot.data.data(), slot.data.size(),
                     kTag + static_cast<int>(stream.posted % group_), &slot.request);
      if (result != NetResult::kSuccess) return result;
      if (slot.request != nullptr) {
        stream.open.push_back(std::move(slot));
        ++stream.posted;
        if (last) ++stream.last;
      }
    }
    if (stream.open.empty()) return NetResult::kSuccess;
    int done = 0;
    const NetResult result = net_.test(stream.open.front().request, &done, nullptr);
    if (result == NetResult::kSuccess && done != 0) {
      stream.open.pop_front();
      ++stream.done;
    }
    return result;
  }

  /// More than is sent.
  std::size_t capacity() const { return bytes_ + 1; }

  NetResult receive(Stream& stream) {
    while (stream.open.size() < kUnderWay && stream.last == 0) {
      Slot slot;
      slot.data.resize(capacity() * group_);
      std::array<void*, kMostInGroup> data;
      std::array<std::size_t, kMostInGroup> sizes;
      std::array<int, kMostInGroup> tags;
      for (int part = 0; part < group_; ++part) {
        data[part] = slot.data.data() + capacity() * part;
        sizes[part] = capacity();
        tags[part] = kTag + part;
      }
      const NetResult result =
          net_.irecv(stream.connection, std::span(data).first(group_),
                     std::span(sizes).first(group_), std::span(tags).first(group_), &slot.request);
      if (result != NetResult::kSuccess) return result;
      if (slot.request == nullptr) break;
      stream.open.push_back(std::move(slot));
    }
    if (stream.open.empty()) return NetResult::kSuccess;
    int done = 0;
    std::array<int, kMostInGroup> sizes;
    sizes.fill(-1);
    const NetResult result = net_.test(stream.open.front().request, &done, sizes.data());
    if (result != NetResult::kSuccess || done == 0) return result;
    const Slot& slot = stream.open.front();
    for (int part = 0; part < group_; ++part) {
      check(stream.done * group_ + part, slot.data.data() + capacity() * part, sizes[part]);
    }
    const TimePoint time = now();
    if (stream.done > 0) stream.longestPause = std::max(stream.longestPause, time - stream.latest);
    stream.latest = time;
    ++stream.done;
    if (sizes[0] == 1) ++stream.last;
    stream.open.pop_front();
    return NetResult::kSuccess;
  }

  void check(std::uint64_t message, const std::byte* data, int size) {
    for (int i = 0; i < size; ++i) {
      if (data[i] != valueOf(message, i)) ++wrong;
    }
    if (size != 1 && static_cast<std::size_t>(size) != lengthOf(message, bytes_)) ++wrong;
  }

  NetDriver& net_;
  const std::size_t bytes_;
  const int group_;
};

/// Ends with its parent.
void startChild() {
  if (fork() != 0) return;
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) pause();
}

/// Where the two sides meet, and what they talk about then.
struct Meeting {
  std::filesystem::path folder;
  std::string name;  ///< of the files with the handles
  int side = 0;
  int connections = 1;
  int first = 0;  ///< device of the first connection
};

/// Both listen, for what the other one sends, and both connect, at the same time. False when the
/// other one does not come, or `stops` before that; streams that were made are in the conversation.
bool meet(NetDriver& net, const Meeting& its, Conversation& conversation, NetResult& result,
          const std::function<bool()>& stops) {
  const auto deviceOf = [&](int connection) { return (its.first + connection) % net.devices(); };
  std::vector<Bytes128> here(its.connections), there(its.connections);
  std::vector<void*> listeners(its.connections);
  for (int i = 0; i < its.connections; ++i) {
    result = net.listen(deviceOf(i), here[i].data(), &listeners[i]);
    if (result != NetResult::kSuccess) return true;
  }
  publish(its.folder / (its.name + std::to_string(its.side)), here);
  bool met = await(its.folder / (its.name + std::to_string(1 - its.side)), there, stops);
  for (int i = 0; i < its.connections; ++i) {
    Stream to{.sends = true}, from{.sends = false};
    while (met && (to.connection == nullptr || from.connection == nullptr)) {
      if (to.connection == nullptr) {
        result = net.connect(deviceOf(i), there[i].data(), &to.connection);
      }
      if (result == NetResult::kSuccess && from.connection == nullptr) {
        result = net.accept(listeners[i], &from.connection);
      }
      met = result == NetResult::kSuccess && !stops();
    }
    (void)net.closeListen(listeners[i]);
    if (to.connection != nullptr) conversation.streams.push_back(std::move(to));
    if (from.connection != nullptr) conversation.streams.push_back(std::move(from));
  }
  return met || result != NetResult::kSuccess;
}

void close(NetDriver& net, Conversation& conversation) {
  for (const Stream& stream : conversation.streams) {
    (void)(stream.sends ? net.closeSend(stream.connection) : net.closeRecv(stream.connection));
  }
}

/// One communicator after another beside the one that lasts, each aborted with messages under way:
/// by the sides in turn, the other one when it sees that, or hears it by an error, as the ranks of
/// a job do.
class Aborts {
 public:
  Aborts(std::string library, int version, std::filesystem::path folder, int side)
      : library_(std::move(library)), version_(version), folder_(std::move(folder)), side_(side) {}

  void start() {
    thread_ = std::thread([this] {
      while (!stops_ && error_.empty()) live();
    });
  }
  void stop() {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int count() const { return count_; }
  const std::string& error() const { return error_; }

 private:
  std::filesystem::path abortOf(int side) const {
    return folder_ / ("abort-" + std::to_string(count_) + "-of-" + std::to_string(side));
  }

  void announce() const { std::ofstream(abortOf(side_)).close(); }

  void live() {
    constexpr std::size_t kBytes = 20'000;
    constexpr std::uint64_t kMessages = 20;  // until it is aborted
    NetDriver net(library_, version_);
    Conversation conversation(net, kBytes, /*group=*/1);
    NetResult result = net.init();
    const Meeting meeting{
        .folder = folder_,
        .name = "communicator-" + std::to_string(count_) + "-",
        .side = side_,
        .first = count_,
    };
    const auto otherEnds = [this] { return std::filesystem::exists(abortOf(1 - side_)); };
    const auto ends = [&] {
      if (stops_) announce();  // what the other one hears next may be an error
      return stops_ || otherEnds();
    };
    bool goesOn = result == NetResult::kSuccess &&
                  meet(net, meeting, conversation, result, ends) && result == NetResult::kSuccess;
    TimePoint look = now() + 1ms;
    while (goesOn) {
      result = conversation.step(/*ending=*/false, /*receiving=*/true);
      const bool enough = side_ == count_ % 2 && conversation.received() >= kMessages;
      goesOn = result == NetResult::kSuccess && !enough && !stops_;
      if (!goesOn || now() < look) continue;
      look = now() + 1ms;
      goesOn = !otherEnds();
    }
    // An error is no surprise once the other one has begun to abort: it says so before it does.
    if (result != NetResult::kSuccess && !otherEnds()) {
      error_ = "communicator " + std::to_string(count_) + " of those that are aborted: error " +
               std::to_string(static_cast<int>(result));
    }
    if (conversation.wrong > 0) error_ = "wrong in a communicator that was aborted";
    announce();
    close(net, conversation);
    (void)net.finalize();
    ++count_;
  }

  const std::string library_;
  const int version_;
  const std::filesystem::path folder_;
  const int side_;
  std::atomic<bool> stops_{false};
  int count_ = 0;
  std::string error_;
  std::thread thread_;
};

int run(int argc, char** argv) {
  if (argc < 5) return 2;
  const int version = std::atoi(argv[2]);
  const std::filesystem::path folder = argv[3];
  const int side = std::atoi(argv[4]);
  double seconds = 1, late = 0;
  std::size_t bytes = 100'000;
  int connections = 2, group = 1, first = 0;
  bool forks = false, leaves = false, aborts = false;
  for (int i = 5; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--late") == 0) late = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--bytes") == 0) bytes = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--connections") == 0) connections = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--group") == 0) group = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--first") == 0) first = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--fork") == 0) forks = std::atoi(argv[i + 1]) != 0;
    if (std::strcmp(argv[i], "--leave") == 0) leaves = std::atoi(argv[i + 1]) != 0;
    if (std::strcmp(argv[i], "--abort") == 0) aborts = std::atoi(argv[i + 1]) != 0;
  }
  NetDriver net(argv[1], version);
  if (!net.error().empty()) return failed(net.error());
  if (const NetResult begun = net.init(); begun != NetResult::kSuccess) return failed(begun);

  Conversation conversation(net, bytes, group);
  const Meeting meeting{
      .folder = folder, .name = "", .side = side, .connections = connections, .first = first};
  NetResult result = NetResult::kSuccess;
  if (!meet(net, meeting, conversation, result, [] { return false; })) return 2;
  if (result != NetResult::kSuccess) return failed(result);
  if (forks) startChild();
  Aborts others(argv[1], version, folder, side);
  if (aborts) others.start();
  std::cout << "ready" << std::endl;

  TimePoint end = now() + fromSeconds(seconds), look = now();
  while (!conversation.over()) {
    const TimePoint time = now();
    if (leaves && time >= end) std::exit(0);  // nothing is closed, and all of it still there
    if (time < end && time >= look) {
      look = time + 10ms;
      if (std::filesystem::exists(folder / "stop")) end = time;
    }
    const bool receiving = time < end || time >= end + fromSeconds(late);
    result = conversation.step(time >= end, receiving);
    if (result != NetResult::kSuccess) {
      others.stop();
      return failed(result);
    }
  }
  others.stop();
  std::uint64_t messages = 0;
  Duration longest{};
  for (const Stream& stream : conversation.streams) {
    if (stream.sends) continue;
    messages += stream.done * group;
    longest = std::max(longest, stream.longestPause);
  }
  close(net, conversation);
  (void)net.finalize();
  if (!others.error().empty()) return failed(others.error());
  if (conversation.wrong > 0) return failed("wrong " + std::to_string(conversation.wrong));
  std::cout << "ok " << messages << " " << toSeconds(longest) * 1e3 << " " << others.count()
            << std::endl;
  return 0;
}

}  // namespace
}  // namespace faultline::test

int main(int argc, char** argv) { return faultline::test::run(argc, argv); }
