#include "resilient_ccl/comm/bootstrap.h"

#include <algorithm>
#include <thread>

#include "base/units.h"
#include "resilient_ccl/fabric/acceptor.h"
#include "resilient_ccl/fabric/poller.h"

namespace faultline::comm {
namespace {

constexpr Duration kRetryPause = 10ms;
// Strangers are looked at no later than this.
constexpr Duration kLongestWait = 50ms;

}  // namespace

Result<std::unique_ptr<Bootstrap>> Bootstrap::connect(BootstrapOptions options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return errorf(Code::kInvalidArgument, "rank {} of {} makes no sense", options.rank,
                  options.size);
  }
  const TimePoint deadline = now() + options.timeout;
  std::unique_ptr<Bootstrap> self(new Bootstrap(std::move(options)));
  const BootstrapOptions& own = self->options_;
  self->peers_.resize(own.size);
  if (own.size > 1) {
    RETURN_IF_ERROR(own.rank == 0 ? self->acceptAll(deadline) : self->connectToRoot(deadline));
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
  if (!options_.listener) {
    ASSIGN_OR_RETURN(options_.listener, transport::tcp::openListener({options_.address, "", 0},
                                                                     options_.rendezvous.port));
  }
  int missing = options_.size - 1;
  fabric::Poller poller;
  RETURN_IF_ERROR(poller.open());
  fabric::Acceptor acceptor(
      poller, authenticator_, kGreetingTime,
      {.configure = [](int socket) { return transport::tcp::configureAccepted(socket, /*tos=*/0); },
       .wanted =
           [this](const fabric::Hello& hello) {
             return hello.rail == kNoRail && hello.source > 0 && hello.source < peers_.size() &&
                    !peers_[hello.source];
           },
       .accepted =
           [this, &missing](const fabric::Hello& hello, UniqueFd socket) {
             peers_[hello.source] = SignedLine(std::move(socket), hello);
             --missing;
           }});
  RETURN_IF_ERROR(acceptor.listen(std::move(options_.listener)));
  while (missing > 0) {
    const Duration left = deadline - now();
    if (left <= Duration::zero()) {
      return errorf(Code::kDeadlineExceeded, "rank(s) {} did not join within {}", missingRanks(),
                    formatDuration(options_.timeout));
    }
    RETURN_IF_ERROR(poller.wait(std::min(left, kLongestWait)).status());
    acceptor.expire(now());
  }
  return okStatus();
}

Status Bootstrap::connectToRoot(TimePoint deadline) {
  fabric::Hello hello;
  hello.source = static_cast<std::uint32_t>(options_.rank);
  for (;;) {
    // A stranger may listen there, and rank 0 on the same port later.
    Result<SignedLine> line =
        SignedLine::connect(authenticator_, options_.address, options_.rendezvous, hello,
                            std::min(deadline, now() + kGreetingTime));
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
  return peers_[rank]
      .send(authenticator_, options_.rank, blob, deadline)
      .withContext(fmt::format("bootstrap with rank {}", rank));
}

Result<std::string> Bootstrap::receive(int rank, TimePoint deadline) {
  Result<std::string> blob = peers_[rank].receive(authenticator_, rank, deadline);
  if (blob.ok()) return blob;
  return blob.status().withContext(fmt::format("bootstrap with rank {}", rank));
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
    if (peers_[rank]) result.push_back({rank, peers_[rank].fd()});
  }
  return result;
}

}  // namespace faultline::comm
