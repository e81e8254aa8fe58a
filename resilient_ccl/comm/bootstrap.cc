#include "resilient_ccl/comm/bootstrap.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <thread>

#include "resilient_ccl/fabric/acceptor.h"
#include "resilient_ccl/fabric/poller.h"

namespace faultline::comm {

using transport::tcp::receiveAll;
using transport::tcp::sendAll;

namespace {

/// What is signed in front of a contribution and the connection's hello.
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

// In place of a rail in the hello of a connection to the rendezvous.
constexpr std::uint32_t kNoRail = 0xffffffff;
// Largest contribution to an allGather: addresses are far smaller.
constexpr std::uint32_t kLargestBlob = 1 << 20;
// A stranger on the rendezvous port gets this long to say who it is.
constexpr Duration kGreetingTime = 2s;
constexpr Duration kRetryPause = 10ms;
// Strangers are looked at no later than this.
constexpr Duration kLongestWait = 50ms;

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
  int missing = options_.size - 1;
  fabric::Poller poller;
  RETURN_IF_ERROR(poller.open());
  fabric::Acceptor acceptor(
      poller, authenticator_, kGreetingTime,
      {.configure = [](int socket) { return transport::tcp::configureAccepted(socket, /*tos=*/0); },
       .wanted =
           [this](const fabric::Hello& hello) {
             return hello.rail == kNoRail && hello.source > 0 && hello.source < peers_.size() &&
                    !peers_[hello.source].socket;
           },
       .accepted =
           [this, &missing](const fabric::Hello& hello, UniqueFd socket) {
             peers_[hello.source] = Line{.socket = std::move(socket), .hello = hello};
             --missing;
           }});
  RETURN_IF_ERROR(acceptor.listen(std::move(listener)));
  while (missing > 0) {
    const Duration left = deadline - now();
    if (left <= Duration::zero()) {
      return errorf(Code::kDeadlineExceeded, "rank(s) {} did not join within {}", missingRanks(),
                    formatDuration(options_.timeout));
    }
    RETURN_IF_ERROR(poller.wait(std::min(left, kLongestWait)));
    acceptor.expire(now());
  }
  return okStatus();
}

Result<Bootstrap::Line> Bootstrap::greetRoot(TimePoint deadline) {
  Line line;
  line.hello.source = static_cast<std::uint32_t>(options_.rank);
  line.hello.rail = kNoRail;
  // No two connections of the job have the same hello: what is signed with it belongs to one.
  auth::fillRandom(std::as_writable_bytes(std::span(&line.hello.epoch, 1)));
  auth::fillRandom(std::as_writable_bytes(std::span(&line.hello.attempt, 1)));
  ASSIGN_OR_RETURN(UniqueFd socket,
                   transport::tcp::beginConnect({options_.address, "", 0}, options_.rendezvous));
  // Who has been silent for so long may be a stranger, or lost what was sent: another connection
  // gets another chance, and the set-up time is not spent on one.
  const TimePoint patience = std::min(deadline, now() + kGreetingTime);
  auto handshake = fabric::Handshake::connecting(std::move(socket), line.hello, patience);
  for (bool done = false; !done;) {
    const Duration left = patience - now();
    pollfd waiting{handshake.fd(), handshake.wantsWritable() ? short{POLLOUT} : short{POLLIN}, 0};
    const auto milliseconds = duration_cast<std::chrono::milliseconds>(left).count();
    if (left <= Duration::zero() || ::poll(&waiting, 1, static_cast<int>(milliseconds)) == 0) {
      return errorf(Code::kDeadlineExceeded, "who listens there has not answered");
    }
    ASSIGN_OR_RETURN(done, handshake.advance(authenticator_));
  }
  line.socket = handshake.release();
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
      authenticator_.tagOf({raw(label), raw(line.hello), std::as_bytes(std::span(blob))});
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
  if (!authenticator_.verify({raw(label), raw(line.hello), std::as_bytes(std::span(blob))}, tag)) {
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

std::vector<Bootstrap::Connection> Bootstrap::connections() const {
  std::vector<Connection> result;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (peers_[rank].socket) result.push_back({rank, peers_[rank].socket.get()});
  }
  return result;
}

}  // namespace faultline::comm
