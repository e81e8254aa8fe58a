#include "tests/support/net_aborts.h"

#include <fstream>
#include <utility>

#include "base/clock.h"
#include "tests/support/net_conversation.h"

namespace faultline::test {

void Aborts::start() {
  thread_ = std::thread([this] {
    while (!stops_ && error_.empty()) live();
  });
}

void Aborts::stop() {
  stops_ = true;
  if (thread_.joinable()) thread_.join();
}

std::filesystem::path Aborts::abortOf(int side) const {
  return folder_ / ("abort-" + std::to_string(count_) + "-of-" + std::to_string(side));
}

void Aborts::announce() const { std::ofstream(abortOf(side_)).close(); }

void Aborts::live() {
  constexpr std::size_t kBytes = 20'000;
  constexpr std::uint64_t kMessages = 20;  // until it is aborted
  NetDriver net(library_, version_);
  if (!net.error().empty()) {
    error_ = net.error();
    return;
  }
  Conversation conversation(net, kBytes, /*group=*/1);
  const auto otherEnds = [this] { return std::filesystem::exists(abortOf(1 - side_)); };
  const auto ends = [&] {
    const bool stopping = stops_;
    if (stopping) announce();  // what the other one hears next may be an error
    return stopping || otherEnds();
  };
  NetResult result = net.init();
  bool goesOn = result == NetResult::kSuccess;
  if (goesOn) {
    const Meeting meeting{.folder = folder_,
                          .name = "communicator-" + std::to_string(count_) + "-",
                          .side = side_,
                          .first = count_};
    const auto met = meet(net, meeting, conversation, ends);
    if (!met && !ends()) error_ = "nobody came to communicator " + std::to_string(count_);
    result = met.value_or(NetResult::kSuccess);
    goesOn = met == NetResult::kSuccess;
  }
  for (TimePoint look = now() + 1ms; goesOn;) {
    result = conversation.step(/*ending=*/false, /*receiving=*/true);
    const bool enough = side_ == count_ % 2 && conversation.leastReceived() >= kMessages;
    goesOn = result == NetResult::kSuccess && !enough && !stops_;
    if (!goesOn || now() < look) continue;
    look = now() + 1ms;
    goesOn = !otherEnds();
  }
  // An error is no surprise once the other one has begun to abort: it says so before it does.
  if (result != NetResult::kSuccess && !otherEnds()) {
    error_ = "communicator " + std::to_string(count_) + ", which nobody has aborted: error " +
             std::to_string(static_cast<int>(result));
  }
  if (conversation.wrong() > 0) error_ = "wrong bytes in a communicator that was aborted";
  announce();
  conversation.close();
  (void)net.finalize();
  ++count_;
}

}  // namespace faultline::test
