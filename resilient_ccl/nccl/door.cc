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
  if (rest_.over(now) && hasRoom(now)) hear(socket_.get());
  for (const Visitor& visitor : visitors_) hear(visitor.frames.fd());
}

void Door::attend(TimePoint now) {
  if (rest_.over(now)) admit(now);
  visitors_.remove_if([&](Visitor& visitor) { return !serve(visitor, now); });
}

void Door::admit(TimePoint now) {
  for (int i = 0; i < kMostCallsPerTurn && hasRoom(now); ++i) {
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
    Challenge challenge{.key = settings_.self->keys.publicKey(),
                        .keyed = settings_.self->jobKey.has_value()};
    auth::fillRandom(challenge.nonce);
    visitors_.push_back({.frames = Frames(std::move(socket)),
                         .from = transport::tcp::Endpoint::fromSockaddr(from),
                         .challenge = challenge.serialize(),
                         .came = now,
                         .deadline = now + kGreetingTime});
    visitors_.back().frames.send(visitors_.back().challenge);
    makeRoom(now);
  }
}

std::ptrdiff_t Door::strangers() const {
  return std::ranges::count_if(visitors_, &Visitor::stranger);
}

/// Whether one more may come, as there are few strangers or the oldest has had some time.
bool Door::hasRoom(TimePoint now) const {
  if (strangers() < static_cast<std::ptrdiff_t>(kMostStrangers)) return true;
  return now - std::ranges::find_if(visitors_, &Visitor::stranger)->came >= kLeastTime;
}

void Door::makeRoom(TimePoint now) {
  if (strangers() <= static_cast<std::ptrdiff_t>(kMostStrangers)) return;
  const auto oldest = std::ranges::find_if(visitors_, &Visitor::stranger);
  // What it says may have come since it was last listened to.
  const bool stays = serve(*oldest, now);
  if (stays && !oldest->stranger) return;
  if (stays && !oldest->heard) refuse(*oldest, "it says nothing, and others wait", now);
  visitors_.erase(oldest);
}

/// Whether there is more to say to it.
bool Door::serve(Visitor& visitor, TimePoint now) {
  if (!visitor.heard) {
    if (!visitor.frames.flush().ok()) return false;
    const auto frame = visitor.frames.receive();
    if (!frame.ok()) {
      if (frame.status().code() == Code::kInvalidArgument) {
        refuse(visitor, frame.status().message(), now);
      }
      return false;
    }
    if (!*frame && now < visitor.deadline) return true;
    if (!*frame) {
      if (visitor.frames.begun()) refuse(visitor, "it does not end its greeting", now);
      return false;
    }
    hear(visitor, **frame, now);
  }
  if (!visitor.frames.flush().ok()) return false;
  // It closes when it has the answer: closing first would take that away.
  return visitor.frames.receive().ok() && now < visitor.deadline;
}

/// What the caller says, when it has proved that it is of the job. `meeting`: with which the answer
/// is signed, as soon as the caller has a public key.
Result<Greeting> Door::examine(Visitor& visitor, const std::string& frame,
                               std::optional<Meeting>& meeting) const {
  ASSIGN_OR_RETURN(const auth::PublicKey caller, Greeting::keyOf(frame));
  ASSIGN_OR_RETURN(meeting, Meeting::ofListener(*settings_.self, settings_.token, endpoint_,
                                                visitor.challenge, caller));
  const auto greeting = meeting->openGreeting(frame);
  if (!greeting) {
    return errorf(Code::kInvalidArgument,
                  "who calls does not prove that it has been given this handle{}",
                  settings_.self->jobKey ? ", and has the same FAULTLINE_KEY" : "");
  }
  visitor.stranger = false;
  return Greeting::parse(*greeting);
}

void Door::hear(Visitor& visitor, const std::string& frame, TimePoint now) {
  std::optional<Meeting> meeting;
  const auto greeting = examine(visitor, frame, meeting);
  visitor.heard = true;
  visitor.deadline = now + (visitor.stranger ? kGreetingTime : settings_.patience);
  const Answer answer =
      greeting.ok() ? settings_.answer(*greeting) : Answer{.refusal = greeting.status().message()};
  if (!answer.refusal.empty()) refuse(visitor, answer.refusal, now);
  std::string said = answer.serialize();
  // Without a proof it tells a caller with another key at least that somebody is here.
  said = meeting ? meeting->signAnswer(std::move(said))
                 : said + std::string(Meeting::kProofBytes, '\0');
  visitor.frames.send(said);
}

void Door::refuse(const Visitor& visitor, const std::string& why, TimePoint now) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  const auto leftOut = complaints_.say(now);
  if (!leftOut) return;
  spdlog::warn("a connection from {} is refused: {}{}", visitor.from.toString(), why,
               *leftOut == 0 ? "" : fmt::format(" ({} more before it)", *leftOut));
}

}  // namespace faultline::nccl
