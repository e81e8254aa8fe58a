#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "resilient_ccl/nccl/call.h"
#include "resilient_ccl/nccl/meeting.h"
#include "resilient_ccl/nccl/options.h"
#include "resilient_ccl/nccl/pair.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::nccl {

inline std::shared_ptr<const Identity> newIdentity(
    const std::optional<auth::JobKey>& jobKey = std::nullopt) {
  return std::make_shared<const Identity>(Identity{.jobKey = jobKey});
}

/// Of one end of a pair over loopback: side 0 is "one", and side 1 "other".
inline Result<Pair::Settings> pairSettings(int side, std::size_t rails,
                                           std::shared_ptr<const Identity> identity) {
  ASSIGN_OR_RETURN(const Options options,
                   Options::read([](const std::string& name) -> std::optional<std::string> {
                     if (name == "FAULTLINE_TRACE") return "never written";
                     return std::nullopt;
                   }));
  std::vector<std::vector<int>> partners(rails);
  for (std::size_t rail = 0; rail < rails; ++rail) {
    for (std::size_t other = 0; other < rails; ++other) {
      if (other != rail) partners[rail].push_back(static_cast<int>(other));
    }
  }
  return Pair::Settings{
      .options = options,
      .rails = std::vector<fabric::Nic>(rails, {.device = "", .address = INADDR_LOOPBACK}),
      .partners = std::move(partners),
      .ioThreads = {},
      .management = INADDR_LOOPBACK,
      .identity = std::move(identity),
      .side = side,
      .self = side == 0 ? "one" : "other",
      .peer = side == 0 ? "other" : "one"};
}

/// A process that is called, without a door: the test says when it says what.
struct Callee {
  std::shared_ptr<const Identity> self = newIdentity();
  auth::JobKey token = auth::JobKey::random();

  Handle handle(const transport::tcp::Endpoint& rendezvous, const std::string& name) const {
    return {.rendezvous = rendezvous, .process = self->id(), .token = token, .name = name};
  }
  std::string challenge() const {
    Challenge challenge{.key = self->keys.publicKey(), .keyed = self->jobKey.has_value()};
    auth::fillRandom(challenge.nonce);
    return challenge.serialize();
  }
  /// Of the call to this rendezvous that has heard this challenge.
  Meeting meeting(const transport::tcp::Endpoint& rendezvous, const std::string& challenge,
                  const std::string& greeting) const {
    const auto key = Greeting::keyOf(greeting);
    EXPECT_TRUE(key.ok()) << key.status().message();
    return Meeting::ofListener(*self, token, rendezvous, challenge, *key).value();
  }
};

/// A call to that process, with ten seconds for it and for its answer.
inline Call beginCall(const Callee& callee, const transport::tcp::Endpoint& rendezvous,
                      const std::string& name, TimePoint start,
                      const std::shared_ptr<const Identity>& self = newIdentity()) {
  Greeting greeting;
  greeting.name = "caller";
  auto call = Call::begin({.from = INADDR_LOOPBACK,
                           .to = callee.handle(rendezvous, name),
                           .self = self,
                           .greeting = greeting,
                           .deadline = start + 10s,
                           .patience = 10s});
  EXPECT_TRUE(call.ok()) << call.status().message();
  return std::move(*call);
}

/// To whoever listens there.
inline Call beginCall(const Callee& callee, const UniqueFd& listener, const std::string& name,
                      TimePoint start) {
  return beginCall(callee, *transport::tcp::localEndpoint(listener.get()), name, start);
}

}  // namespace faultline::nccl
