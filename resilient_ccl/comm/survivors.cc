#include "resilient_ccl/comm/survivors.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "base/units.h"
#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/comm/roster.h"
#include "resilient_ccl/comm/signed_line.h"
#include "resilient_ccl/fabric/acceptor.h"
#include "resilient_ccl/fabric/poller.h"

namespace faultline::comm {

using transport::tcp::Endpoint;

namespace {

// Who is silent is looked at so often.
constexpr Duration kKnockPause = 20ms;
// Between two attempts to come to a door that closed on us.
constexpr int kRetryMilliseconds = 10;

/// How an attempt to connect stands.
enum class Knock : std::uint8_t { kUnderWay, kOpened, kRefused, kFailed };

Knock stateOf(int fd, const Endpoint& door) {
  pollfd waiting{fd, POLLOUT, 0};
  if (::poll(&waiting, 1, 0) == 0) return Knock::kUnderWay;
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return Knock::kFailed;
  if (error == ECONNREFUSED) return Knock::kRefused;
  if (error != 0) return Knock::kFailed;
  // Two ends of one socket: the port was free, and the system chose it for this end too.
  const auto own = transport::tcp::localEndpoint(fd);
  return own.ok() && *own == door ? Knock::kRefused : Knock::kOpened;
}

/// What the first of those that go on tells the others.
struct Decision {
  std::vector<int> ranks;
  std::uint16_t port = 0;
  auth::Nonce nonce{};

  std::string serialize() const;
  static std::optional<Decision> parse(const std::string& bytes, std::size_t size);
};

std::string Decision::serialize() const {
  std::string bytes(reinterpret_cast<const char*>(nonce.data()), nonce.size());
  const auto append = [&](std::uint32_t word) {
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  };
  append(port);
  for (const int rank : ranks) append(static_cast<std::uint32_t>(rank));
  return bytes;
}

std::optional<Decision> Decision::parse(const std::string& bytes, std::size_t size) {
  Decision decision;
  std::uint32_t word = 0;
  if (bytes.size() < decision.nonce.size() + sizeof(word) || bytes.size() % sizeof(word) != 0) {
    return std::nullopt;
  }
  std::memcpy(decision.nonce.data(), bytes.data(), decision.nonce.size());
  std::size_t at = decision.nonce.size();
  const auto next = [&] {
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    at += sizeof(word);
    return word;
  };
  decision.port = static_cast<std::uint16_t>(next());
  while (at < bytes.size()) {
    const std::uint32_t rank = next();
    if (rank >= size) return std::nullopt;
    decision.ranks.push_back(static_cast<int>(rank));
  }
  if (decision.ranks.empty()) return std::nullopt;
  return decision;
}

/// The key of those that go on follows from the old one: it needs not be sent.
auth::JobKey keyOf(auth::Authenticator& old, const Decision& decision) {
  constexpr std::uint32_t kMagic = 0x53434c46;  // "FLCS"
  const auth::Tag tag = old.tagOf({std::as_bytes(std::span(&kMagic, 1)), decision.nonce,
                                   std::as_bytes(std::span(decision.ranks))});
  return auth::JobKey(tag);
}

/// One process's search.
class Search {
 public:
  explicit Search(const SurvivorOptions& options)
      : options_(options),
        authenticator_(options.jobKey),
        roster_(options.rank, static_cast<int>(options.doors.size())) {}

  Result<Survivors> run();

 private:
  int size() const { return static_cast<int>(options_.doors.size()); }
  bool refused(const Endpoint& door, TimePoint deadline) const;
  std::optional<Survivors> follow(int leader, TimePoint deadline);
  Result<Survivors> lead();
  Status gather(fabric::Poller& poller);
  void knock();
  void lineReadable(fabric::Poller& poller, int rank);
  Survivors outcome(const Decision& decision);

  const SurvivorOptions& options_;
  auth::Authenticator authenticator_;
  Roster roster_;
  std::map<int, SignedLine> lines_;  // of those that came
  std::map<int, UniqueFd> knocks_;   // at the doors of the silent
};

Result<Survivors> Search::run() {
  // The others come when they have noticed the failure, and who leads waits for them in turn.
  const TimePoint deadline = now() + 2 * options_.patience;
  for (int leader = 0; leader < options_.rank; ++leader) {
    if (std::optional<Survivors> found = follow(leader, deadline)) return std::move(*found);
  }
  return lead();
}

/// Whether nobody listens at `door` any more.
bool Search::refused(const Endpoint& door, TimePoint deadline) const {
  const auto attempt = transport::tcp::beginConnect({options_.address, "", 0}, door);
  if (!attempt.ok()) return false;
  Knock state = Knock::kUnderWay;
  while ((state = stateOf(attempt->get(), door)) == Knock::kUnderWay && now() < deadline) {
    pollfd waiting{attempt->get(), POLLOUT, 0};
    ::poll(&waiting, 1, kRetryMilliseconds);
  }
  return state == Knock::kRefused;
}

/// Nothing: this one does not lead; it is gone, or silent.
std::optional<Survivors> Search::follow(int leader, TimePoint deadline) {
  const fabric::Hello hello{.source = static_cast<std::uint32_t>(options_.rank),
                            .destination = static_cast<std::uint32_t>(leader)};
  const Endpoint& door = options_.doors[leader];
  while (now() < deadline) {
    if (refused(door, deadline)) {
      roster_.gone(leader);
      return std::nullopt;
    }
    // Who listens there may be gone without a word, on a connection that only this end has.
    const TimePoint answered = now() + std::min(kGreetingTime, options_.patience / 4);
    auto line = SignedLine::connect(authenticator_, options_.address, door, hello,
                                    std::min(answered, deadline));
    if (line.ok()) {
      const auto word = line->receive(authenticator_, leader, deadline);
      const auto decision =
          word.ok() ? Decision::parse(*word, options_.doors.size()) : std::optional<Decision>();
      if (decision && decision->ranks.front() == leader &&
          std::ranges::binary_search(decision->ranks, options_.rank)) {
        return outcome(*decision);
      }
    }
    ::poll(nullptr, 0, kRetryMilliseconds);  // it has closed the door on us, or died just now
  }
  return std::nullopt;
}

void Search::lineReadable(fabric::Poller& poller, int rank) {
  // Nothing is said on a line before the decision: it has ended.
  poller.remove(lines_.at(rank).fd());
  lines_.erase(rank);
  roster_.left(rank);
}

void Search::knock() {
  for (int rank = 0; rank < size(); ++rank) {
    if (!roster_.isSilent(rank)) {
      knocks_.erase(rank);
      continue;
    }
    UniqueFd& attempt = knocks_[rank];
    if (!attempt) {
      auto begun = transport::tcp::beginConnect({options_.address, "", 0}, options_.doors[rank]);
      if (begun.ok()) attempt = std::move(*begun);
      continue;
    }
    const Knock state = stateOf(attempt.get(), options_.doors[rank]);
    if (state == Knock::kUnderWay) continue;
    attempt.reset();
    if (state == Knock::kRefused) roster_.gone(rank);
  }
}

Status Search::gather(fabric::Poller& poller) {
  fabric::Acceptor acceptor(
      poller, authenticator_, kGreetingTime,
      {.configure = [](int socket) { return transport::tcp::configureAccepted(socket, /*tos=*/0); },
       .wanted =
           [this](const fabric::Hello& hello) {
             return hello.rail == kNoRail && hello.source < options_.doors.size() &&
                    static_cast<int>(hello.source) != options_.rank &&
                    static_cast<int>(hello.destination) == options_.rank;
           },
       .accepted =
           [this, &poller](const fabric::Hello& hello, UniqueFd socket) {
             const int rank = static_cast<int>(hello.source), fd = socket.get();
             if (lines_.contains(rank)) lineReadable(poller, rank);  // it has come again
             lines_[rank] = SignedLine(std::move(socket), hello);
             roster_.here(rank);
             (void)poller.add(fd, EPOLLIN,
                              [this, &poller, rank](auto) { lineReadable(poller, rank); });
           }});
  // The door stays open after this: what listens here is a second name of the same socket.
  UniqueFd door(::dup(options_.door));
  if (!door) return Status::fromErrno(errno, "listen for the others");
  RETURN_IF_ERROR(acceptor.listen(std::move(door)));
  const TimePoint deadline = now() + options_.patience;
  while (!roster_.complete() && now() < deadline) {
    knock();
    RETURN_IF_ERROR(poller.wait(kKnockPause).status());
    acceptor.expire(now());
  }
  return okStatus();
}

Result<Survivors> Search::lead() {
  fabric::Poller poller;
  RETURN_IF_ERROR(poller.open());
  RETURN_IF_ERROR(gather(poller));
  if (!roster_.mayGoOn()) {
    return errorf(Code::kUnavailable, "cannot go on: within {}, {}",
                  formatDuration(options_.patience), roster_.objection());
  }
  ASSIGN_OR_RETURN(UniqueFd listener, transport::tcp::openListener({options_.address, "", 0}));
  ASSIGN_OR_RETURN(const Endpoint here, transport::tcp::localEndpoint(listener.get()));
  Decision decision{.ranks = roster_.present(), .port = here.port};
  auth::fillRandom(decision.nonce);
  // One that has left just now is missed when those that go on connect.
  for (auto& [rank, line] : lines_) {
    RETURN_IF_ERROR(
        line.send(authenticator_, options_.rank, decision.serialize(), now() + options_.patience)
            .withContext(fmt::format("tell rank {} who goes on", rank)));
  }
  Survivors result = outcome(decision);
  result.listener = std::move(listener);
  return result;
}

Survivors Search::outcome(const Decision& decision) {
  return {.ranks = decision.ranks,
          .jobKey = keyOf(authenticator_, decision),
          .rendezvous = {options_.doors[decision.ranks.front()].address, decision.port},
          .listener = {}};
}

}  // namespace

Result<Survivors> gatherSurvivors(const SurvivorOptions& options) { return Search(options).run(); }

}  // namespace faultline::comm
