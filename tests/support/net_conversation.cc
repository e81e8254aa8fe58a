#include "tests/support/net_conversation.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <span>
#include <thread>
#include <utility>

namespace faultline::test {
namespace {

constexpr int kUnderWay = 8;  // NCCL_STEPS
constexpr int kTag = 5;       // of the first of a group
constexpr int kMostInGroup = 8;
constexpr std::uint64_t kAhead =
    100;  // messages after the end, which may come before it at the peer
constexpr Duration kMeet = 20s;

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
  const TimePoint deadline = now() + kMeet;
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

}  // namespace

void Conversation::add(void* connection, bool sends) {
  streams_.push_back({.connection = connection, .sends = sends});
}

NetResult Conversation::step(bool ending, bool receiving) {
  for (Stream& stream : streams_) {
    if (!stream.sends && !receiving) continue;
    const NetResult result = stream.sends ? send(stream, ending) : receive(stream);
    if (result != NetResult::kSuccess) return result;
  }
  return NetResult::kSuccess;
}

bool Conversation::over(bool sends) const {
  return std::ranges::all_of(streams_, [&](const Stream& stream) {
    return stream.sends != sends ||
           (stream.last == (sends ? kUnderWay * group_ : kUnderWay) && stream.open.empty());
  });
}

void Conversation::close() {
  for (const Stream& stream : streams_) {
    (void)(stream.sends ? net_.closeSend(stream.connection) : net_.closeRecv(stream.connection));
  }
}

std::uint64_t Conversation::messages() const {
  std::uint64_t messages = 0;
  for (const Stream& stream : streams_) {
    if (!stream.sends) messages += stream.done * group_;
  }
  return messages;
}

std::uint64_t Conversation::leastReceived() const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const Stream& stream : streams_) {
    if (!stream.sends) least = std::min(least, stream.done);
  }
  return least;
}

Duration Conversation::longestPause() const {
  Duration longest{};
  for (const Stream& stream : streams_) longest = std::max(longest, stream.longestPause);
  return longest;
}

NetResult Conversation::send(Stream& stream, bool ending) {
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

NetResult Conversation::receive(Stream& stream) {
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
        net_.irecv(stream.connection, std::span(data).first(group_), std::span(sizes).first(group_),
                   std::span(tags).first(group_), &slot.request);
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

void Conversation::check(std::uint64_t message, const std::byte* data, int size) {
  for (int i = 0; i < size; ++i) {
    if (data[i] != valueOf(message, i)) ++wrong_;
  }
  if (size != 1 && static_cast<std::size_t>(size) != lengthOf(message, bytes_)) ++wrong_;
}

std::optional<NetResult> meet(NetDriver& net, const Meeting& its, Conversation& conversation,
                              const std::function<bool()>& stops) {
  const auto deviceOf = [&](int connection) { return (its.first + connection) % net.devices(); };
  const auto fileOf = [&](int side) { return its.folder / (its.name + std::to_string(side)); };
  std::vector<Bytes128> here(its.connections), there(its.connections);
  std::vector<void*> listeners(its.connections);
  NetResult result = NetResult::kSuccess;
  for (int i = 0; i < its.connections && result == NetResult::kSuccess; ++i) {
    result = net.listen(deviceOf(i), here[i].data(), &listeners[i]);
  }
  bool goesOn = result == NetResult::kSuccess;
  if (goesOn) {
    publish(fileOf(its.side), here);
    // Who stops has said so before it leaves, and is not called any more.
    goesOn = await(fileOf(1 - its.side), there, stops) && !stops();
  }
  for (int i = 0; i < its.connections; ++i) {
    void *to = nullptr, *from = nullptr;
    while (goesOn && (to == nullptr || from == nullptr)) {
      if (to == nullptr) result = net.connect(deviceOf(i), there[i].data(), &to);
      if (result == NetResult::kSuccess && from == nullptr) {
        result = net.accept(listeners[i], &from);
      }
      goesOn = result == NetResult::kSuccess && !stops();
    }
    if (to != nullptr) conversation.add(to, /*sends=*/true);
    if (from != nullptr) conversation.add(from, /*sends=*/false);
    if (listeners[i] != nullptr) (void)net.closeListen(listeners[i]);
  }
  if (!goesOn && result == NetResult::kSuccess) return std::nullopt;
  return result;
}

}  // namespace faultline::test
