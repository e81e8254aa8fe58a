#include "resilient_ccl/nccl/door.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"

namespace faultline::nccl {
namespace {

// Calls taken before visitors get their turn.
constexpr int kMostCallsPerTurn = 64;

}  // namespace

Result<std::unique_ptr<Door>> Door::open(Settings settings) {
  std::unique_ptr<Door> door(new Door(std::move(settings)));
  ASSIGN_OR_RETURN(door->socket_, transport::tcp::openListener({door->settings_.address, "", 0}));
  ASSIGN_OR_RETURN(door->endpoint_, transport::tcp::localEndpoint(door->socket_.get()));
  return door;
}

void Door::waitFor(std::vector<pollfd>& waits, TimePoint now) const {
  const auto hear = [&](int fd) { waits.push_back({.fd = fd, .events = POLLIN, .revents = 0}); };
  if (rest_.over(now)) hear(socket_.get());
  for (const Visitor& visitor : visitors_) hear(visitor.frames.fd());
}

void Door::attend(TimePoint now) {
  if (rest_.over(now)) admit(now);
  visitors_.remove_if([&](Visitor& visitor) { return !serve(visitor, now); });
}

void Door::admit(TimePoint now) {
  for (int i = 0; i < kMostCallsPerTurn; ++i) {
    sockaddr_in from{};
    socklen_t size = sizeof(from);
    UniqueFd socket(::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&from), &size,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      const int error = errno;
      (void)rest_.begin(error, now,
                        fmt::format("a process that calls at {}", endpoint_.toString()));
      return;
    }
    if (!transport::tcp::configureAccepted(socket.get(), 0).ok()) continue;
    visitors_.push_back({.frames = Frames(std::move(socket)),
                         .from = transport::tcp::Endpoint::fromSockaddr(from),
                         .deadline = now + kGreetingTime});
    makeRoom(now);
  }
}

void Door::makeRoom(TimePoint now) {
  const auto strangers = std::ranges::count_if(visitors_, &Visitor::stranger);
  if (static_cast<std::size_t>(strangers) <= kMostStrangers) return;
  const auto oldest = std::ranges::find_if(visitors_, &Visitor::stranger);
  // What it says may have come since it was last listened to.
  const bool stays = serve(*oldest, now);
  if (stays && !oldest->stranger) return;
  if (stays && !oldest->heard) complain(*oldest, "it says nothing, and others wait", now);
  visitors_.erase(oldest);
}

/// Whether there is more to say to it.
bool Door::serve(Visitor& visitor, TimePoint now) {
  if (!visitor.heard) {
    const auto frame = visitor.frames.receive();
    if (!frame.ok()) {
      if (frame.status().code() == Code::kInvalidArgument) {
        complain(visitor, frame.status().message(), now);
      }
      return false;
    }
    if (!*frame) return now < visitor.deadline;
    hear(visitor, **frame, now);
  }
  if (!visitor.frames.flush().ok()) return false;
  // It closes when it has the answer: closing first would take that away.
  return visitor.frames.receive().ok() && now < visitor.deadline;
}

void Door::hear(Visitor& visitor, const std::string& frame, TimePoint now) {
  const auto greeting = Greeting::parse(frame);
  visitor.heard = true;
  visitor.stranger = !greeting.ok() || greeting->proof != settings_.token;
  visitor.deadline = now + (visitor.stranger ? kGreetingTime : settings_.patience);
  const Answer answer = !greeting.ok() ? Answer{.refusal = greeting.status().message()}
                        : visitor.stranger
                            ? Answer{.refusal = "who calls has not been given this handle"}
                            : settings_.answer(*greeting);
  if (!answer.refusal.empty()) complain(visitor, answer.refusal, now);
  visitor.frames.send(answer.serialize());
}

void Door::complain(const Visitor& visitor, const std::string& why, TimePoint now) {
  const auto leftOut = complaints_.say(now);
  if (!leftOut) return;
  spdlog::warn("a connection from {} is refused: {}{}", visitor.from.toString(), why,
               *leftOut == 0 ? "" : fmt::format(" ({} more before it)", *leftOut));
}

}  // namespace faultline::nccl
