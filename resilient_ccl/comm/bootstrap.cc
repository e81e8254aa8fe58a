#include "resilient_ccl/comm/bootstrap.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <thread>

namespace faultline::comm {

using transport::tcp::receiveAll;
using transport::tcp::sendAll;

namespace {

/// How a rank introduces itself to rank 0, which has said its nonce first.
struct Greeting {
  static constexpr std::uint32_t kMagic = 0x42434c46;  // "FLCB"
  std::uint32_t magic = kMagic;
  std::uint32_t rank = 0;
  auth::Nonce nonce{};
};
static_assert(sizeof(Greeting) == 24);

struct SignedGreeting {
  Greeting greeting;
  auth::Tag tag{};  // of the greeting and rank 0's nonce
};
static_assert(sizeof(SignedGreeting) == sizeof(Greeting) + sizeof(auth::Tag));

// Begins what rank 0 signs in its answer, which is otherwise what the greeting signs.
constexpr std::uint32_t kWelcomeMagic = 0x57434c46;  // "FLCW"

/// What is signed in front of a contribution and the connection's nonce.
struct BlobLabel {
  std::uint32_t magic = 0x44434c46;  // "FLCD"
  std::uint32_t sender = 0;
  std::uint64_t number = 0;  // of the contribution on its connection and direction
};
static_assert(sizeof(BlobLabel) == 16);

template <typename T>
std::span<const std::byte> raw(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// Largest contribution to an allGather: addresses are far smaller.
constexpr std::uint32_t kLargestBlob = 1 << 20;
// A stranger on the rendezvous port gets this long to say who it is.
constexpr Duration kGreetingTime = 2s;
constexpr Duration kRetryPause = 10ms;
constexpr char kGoodbye = 'B';

}  // namespace

Result<std::unique_ptr<Bootstrap>> Bootstrap::connect(const BootstrapOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return errorf(Code::kInvalidArgument, "rank {} of {} makes no sense", options.rank,
                  options.size);
  }
  std::unique_ptr<Bootstrap> self(new Bootstrap(options));
  self->peers_.resize(options.size);
  const TimePoint deadline = now() + options.timeout;
  if (options.size > 1) {
    RETURN_IF_ERROR(options.rank == 0 ? self->acceptAll(deadline) : self->connectToRoot(deadline));
  }
  return self;
}

std::string Bootstrap::missingRanks() const {
  std::string list;
  for (int rank = 1; rank < options_.size; ++rank) {
    if (!peers_[rank].socket) list += fmt::format("{}{}", list.empty() ? "" : ", ", rank);
  }
  return list;
}

Status Bootstrap::acceptAll(TimePoint deadline) {
  ASSIGN_OR_RETURN(UniqueFd listener, transport::tcp::openListener({options_.address, "", 0},
                                                                   options_.rendezvous.port));
  for (int missing = options_.size - 1; missing > 0;) {
    const Duration left = deadline - now();
    pollfd waiting{listener.get(), POLLIN, 0};
    const auto milliseconds = duration_cast<std::chrono::milliseconds>(left).count();
    if (left <= Duration::zero() || ::poll(&waiting, 1, static_cast<int>(milliseconds)) == 0) {
      return errorf(Code::kDeadlineExceeded, "rank(s) {} did not join within {}", missingRanks(),
                    formatDuration(options_.timeout));
    }
    UniqueFd socket(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) continue;
    RETURN_IF_ERROR(transport::tcp::configureAccepted(socket.get(), 0));
    if (acceptOne(std::move(socket), std::min(deadline, now() + kGreetingTime))) --missing;
  }
  return okStatus();
}

bool Bootstrap::acceptOne(UniqueFd socket, TimePoint deadline) {
  Line line{.socket = std::move(socket)};
  auth::fillRandom(line.nonce);
  SignedGreeting signedGreeting;
  const Greeting& greeting = signedGreeting.greeting;
  if (!sendAll(line.socket.get(), &line.nonce, sizeof(line.nonce), deadline).ok() ||
      !receiveAll(line.socket.get(), &signedGreeting, sizeof(signedGreeting), deadline).ok()) {
    return false;
  }
  const bool ours = greeting.magic == Greeting::kMagic && greeting.rank > 0 &&
                    greeting.rank < peers_.size() && !peers_[greeting.rank].socket &&
                    authenticator_.verify({raw(greeting), line.nonce}, signedGreeting.tag);
  if (!ours) return false;  // a stranger; closed
  const auth::Tag welcome = authenticator_.tagOf({raw(kWelcomeMagic), raw(greeting), line.nonce});
  if (!sendAll(line.socket.get(), &welcome, sizeof(welcome), deadline).ok()) return false;
  peers_[greeting.rank] = std::move(line);
  return true;
}

Result<Bootstrap::Line> Bootstrap::greetRoot(TimePoint deadline) {
  Line line;
  ASSIGN_OR_RETURN(line.socket,
                   transport::tcp::beginConnect({options_.address, "", 0}, options_.rendezvous));
  const int fd = line.socket.get();
  RETURN_IF_ERROR(receiveAll(fd, &line.nonce, sizeof(line.nonce), deadline));
  SignedGreeting signedGreeting{.greeting = {.rank = static_cast<std::uint32_t>(options_.rank)}};
  Greeting& greeting = signedGreeting.greeting;
  auth::fillRandom(greeting.nonce);
  signedGreeting.tag = authenticator_.tagOf({raw(greeting), line.nonce});
  RETURN_IF_ERROR(sendAll(fd, &signedGreeting, sizeof(signedGreeting), deadline));
  auth::Tag welcome;
  RETURN_IF_ERROR(receiveAll(fd, &welcome, sizeof(welcome), deadline));
  if (!authenticator_.verify({raw(kWelcomeMagic), raw(greeting), line.nonce}, welcome)) {
    return errorf(Code::kUnavailable, "who listens there does not have the key of this job");
  }
  return line;
}

Status Bootstrap::connectToRoot(TimePoint deadline) {
  for (;;) {
    Result<Line> line = greetRoot(deadline);
    if (line.ok()) {
      peers_[0] = std::move(*line);
      return okStatus();
    }
    if (now() + kRetryPause > deadline) {
      return line.status().withContext(fmt::format("join rank 0 at {} within {}",
                                                   options_.rendezvous.toString(),
                                                   formatDuration(options_.timeout)));
    }
    std::this_thread::sleep_for(kRetryPause);  // rank 0 may not listen yet: nothing tells us when
  }
}

Status Bootstrap::send(int rank, const std::string& blob, TimePoint deadline) {
  Line& line = peers_[rank];
  const auto length = static_cast<std::uint32_t>(blob.size());
  const BlobLabel label{.sender = static_cast<std::uint32_t>(options_.rank), .number = line.sent++};
  const auth::Tag tag =
      authenticator_.tagOf({raw(label), line.nonce, std::as_bytes(std::span(blob))});
  const auto attempt = [&]() -> Status {
    RETURN_IF_ERROR(sendAll(line.socket.get(), &length, sizeof(length), deadline));
    RETURN_IF_ERROR(sendAll(line.socket.get(), blob.data(), blob.size(), deadline));
    return sendAll(line.socket.get(), &tag, sizeof(tag), deadline);
  };
  return attempt().withContext(fmt::format("bootstrap with rank {}", rank));
}

Result<std::string> Bootstrap::receive(int rank, TimePoint deadline) {
  Line& line = peers_[rank];
  const std::string context = fmt::format("bootstrap with rank {}", rank);
  std::uint32_t length = 0;
  RETURN_IF_ERROR(
      receiveAll(line.socket.get(), &length, sizeof(length), deadline).withContext(context));
  if (length > kLargestBlob) {
    return errorf(Code::kInvalidArgument, "{}: a contribution of {} bytes", context, length);
  }
  std::string blob(length, '\0');
  auth::Tag tag;
  RETURN_IF_ERROR(
      receiveAll(line.socket.get(), blob.data(), blob.size(), deadline).withContext(context));
  RETURN_IF_ERROR(receiveAll(line.socket.get(), &tag, sizeof(tag), deadline).withContext(context));
  const BlobLabel label{.sender = static_cast<std::uint32_t>(rank), .number = line.received++};
  if (!authenticator_.verify({raw(label), line.nonce, std::as_bytes(std::span(blob))}, tag)) {
    return errorf(Code::kInvalidArgument, "{}: a contribution that is not its own", context);
  }
  return blob;
}

Result<std::vector<std::string>> Bootstrap::allGather(const std::string& mine) {
  RETURN_IF_ERROR(offer(mine));
  return collect(mine);
}

Status Bootstrap::offer(const std::string& mine) {
  return options_.rank == 0 ? okStatus() : send(0, mine, now() + options_.timeout);
}

Result<std::vector<std::string>> Bootstrap::collect(const std::string& mine) {
  const TimePoint deadline = now() + options_.timeout;
  std::vector<std::string> all(options_.size);
  all[options_.rank] = mine;
  if (options_.size == 1) return all;
  if (options_.rank != 0) {
    for (std::string& blob : all) {
      ASSIGN_OR_RETURN(blob, receive(0, deadline));
    }
    return all;
  }
  for (int rank = 1; rank < options_.size; ++rank) {
    ASSIGN_OR_RETURN(all[rank], receive(rank, deadline));
  }
  for (int rank = 1; rank < options_.size; ++rank) {
    for (const std::string& blob : all) RETURN_IF_ERROR(send(rank, blob, deadline));
  }
  return all;
}

Status Bootstrap::goodbye() {
  const TimePoint deadline = now() + options_.timeout;
  char word = kGoodbye;
  if (options_.size == 1) return okStatus();
  if (options_.rank != 0) {
    RETURN_IF_ERROR(
        sendAll(peers_[0].socket.get(), &word, 1, deadline).withContext("goodbye to rank 0"));
    RETURN_IF_ERROR(
        receiveAll(peers_[0].socket.get(), &word, 1, deadline).withContext("goodbye from rank 0"));
    ::shutdown(peers_[0].socket.get(), SHUT_WR);
    return okStatus();
  }
  for (int rank = 1; rank < options_.size; ++rank) {
    RETURN_IF_ERROR(receiveAll(peers_[rank].socket.get(), &word, 1, deadline)
                        .withContext(fmt::format("goodbye from rank {}", rank)));
  }
  for (int rank = 1; rank < options_.size; ++rank) {
    RETURN_IF_ERROR(sendAll(peers_[rank].socket.get(), &word, 1, deadline)
                        .withContext(fmt::format("goodbye to rank {}", rank)));
  }
  // Our close resets the connection and would destroy an answer that has not been read yet: the
  // others say first that they have it, by the end of their stream. Nothing is closed here, as
  // another thread may be watching the descriptors.
  for (int rank = 1; rank < options_.size; ++rank) {
    (void)receiveAll(peers_[rank].socket.get(), &word, 1, deadline);
  }
  return okStatus();
}

std::vector<Bootstrap::Connection> Bootstrap::connections() const {
  std::vector<Connection> result;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (peers_[rank].socket) result.push_back({rank, peers_[rank].socket.get()});
  }
  return result;
}

}  // namespace faultline::comm
