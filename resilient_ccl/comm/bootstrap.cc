#include "resilient_ccl/comm/bootstrap.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace faultline::comm {

using transport::tcp::receiveAll;
using transport::tcp::sendAll;

namespace {

struct Greeting {
  static constexpr std::uint32_t kMagic = 0x42434c46;  // "FLCB"
  std::uint32_t magic = kMagic;
  std::uint32_t rank = 0;
  std::uint64_t jobKey = 0;
};

// Largest contribution to an allGather: addresses are far smaller.
constexpr std::uint32_t kLargestBlob = 1 << 20;
// A stranger on the rendezvous port gets this long to say who it is.
constexpr Duration kGreetingTime = 2s;
constexpr Duration kRetryPause = 10ms;
constexpr char kGoodbye = 'B';

Status sendBlob(int fd, const std::string& blob, TimePoint deadline) {
  const auto length = static_cast<std::uint32_t>(blob.size());
  RETURN_IF_ERROR(sendAll(fd, &length, sizeof(length), deadline));
  return sendAll(fd, blob.data(), blob.size(), deadline);
}

Result<std::string> receiveBlob(int fd, TimePoint deadline) {
  std::uint32_t length = 0;
  RETURN_IF_ERROR(receiveAll(fd, &length, sizeof(length), deadline));
  if (length > kLargestBlob)
    return errorf(Code::kInvalidArgument, "a contribution of {} bytes", length);
  std::string blob(length, '\0');
  RETURN_IF_ERROR(receiveAll(fd, blob.data(), blob.size(), deadline));
  return blob;
}

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
    if (!peers_[rank]) list += fmt::format("{}{}", list.empty() ? "" : ", ", rank);
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
    Greeting greeting;
    const Status greeted = receiveAll(socket.get(), &greeting, sizeof(greeting),
                                      std::min(deadline, now() + kGreetingTime));
    const bool ours = greeted.ok() && greeting.magic == Greeting::kMagic &&
                      greeting.jobKey == options_.jobKey && greeting.rank > 0 &&
                      greeting.rank < peers_.size() && !peers_[greeting.rank];
    if (!ours) continue;  // a stranger; closed
    peers_[greeting.rank] = std::move(socket);
    --missing;
  }
  return okStatus();
}

Status Bootstrap::connectToRoot(TimePoint deadline) {
  const Greeting greeting{.rank = static_cast<std::uint32_t>(options_.rank),
                          .jobKey = options_.jobKey};
  for (;;) {
    auto socket = transport::tcp::beginConnect({options_.address, "", 0}, options_.rendezvous);
    Status status = socket.status();
    if (status.ok()) {
      status = sendAll(socket->get(), &greeting, sizeof(greeting), deadline);
      if (status.ok()) {
        peers_[0] = std::move(*socket);
        return okStatus();
      }
    }
    if (now() + kRetryPause > deadline) {
      return status.withContext(fmt::format("join rank 0 at {} within {}",
                                            options_.rendezvous.toString(),
                                            formatDuration(options_.timeout)));
    }
    std::this_thread::sleep_for(kRetryPause);  // rank 0 may not listen yet: nothing tells us when
  }
}

Result<std::vector<std::string>> Bootstrap::allGather(const std::string& mine) {
  const TimePoint deadline = now() + options_.timeout;
  std::vector<std::string> all(options_.size);
  all[options_.rank] = mine;
  if (options_.size == 1) return all;
  if (options_.rank != 0) {
    RETURN_IF_ERROR(sendBlob(peers_[0].get(), mine, deadline).withContext("bootstrap with rank 0"));
    for (auto& blob : all) {
      auto received = receiveBlob(peers_[0].get(), deadline);
      if (!received.ok()) return received.status().withContext("bootstrap with rank 0");
      blob = std::move(*received);
    }
    return all;
  }
  for (int rank = 1; rank < options_.size; ++rank) {
    auto received = receiveBlob(peers_[rank].get(), deadline);
    if (!received.ok())
      return received.status().withContext(fmt::format("bootstrap with rank {}", rank));
    all[rank] = std::move(*received);
  }
  for (int rank = 1; rank < options_.size; ++rank) {
    for (const auto& blob : all) {
      RETURN_IF_ERROR(sendBlob(peers_[rank].get(), blob, deadline)
                          .withContext(fmt::format("bootstrap with rank {}", rank)));
    }
  }
  return all;
}

Status Bootstrap::goodbye() {
  const TimePoint deadline = now() + options_.timeout;
  char word = kGoodbye;
  if (options_.size == 1) return okStatus();
  if (options_.rank != 0) {
    RETURN_IF_ERROR(sendAll(peers_[0].get(), &word, 1, deadline).withContext("goodbye to rank 0"));
    RETURN_IF_ERROR(
        receiveAll(peers_[0].get(), &word, 1, deadline).withContext("goodbye from rank 0"));
    ::shutdown(peers_[0].get(), SHUT_WR);
    return okStatus();
  }
  for (int rank = 1; rank < options_.size; ++rank) {
    RETURN_IF_ERROR(receiveAll(peers_[rank].get(), &word, 1, deadline)
                        .withContext(fmt::format("goodbye from rank {}", rank)));
  }
  for (int rank = 1; rank < options_.size; ++rank) {
    RETURN_IF_ERROR(sendAll(peers_[rank].get(), &word, 1, deadline)
                        .withContext(fmt::format("goodbye to rank {}", rank)));
  }
  // Our close resets the connection and would destroy an answer that has not been read yet: the
  // others say first that they have it, by the end of their stream. Nothing is closed here, as
  // another thread may be watching the descriptors.
  for (int rank = 1; rank < options_.size; ++rank) {
    (void)receiveAll(peers_[rank].get(), &word, 1, deadline);
  }
  return okStatus();
}

std::vector<Bootstrap::Connection> Bootstrap::connections() const {
  std::vector<Connection> result;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (peers_[rank]) result.push_back({rank, peers_[rank].get()});
  }
  return result;
}

}  // namespace faultline::comm
