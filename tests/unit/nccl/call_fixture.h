#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>
#include <utility>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "resilient_ccl/nccl/call.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::nccl {

/// A call to this address, with ten seconds for it and for its answer.
inline Call beginCall(const transport::tcp::Endpoint& rendezvous, const std::string& name,
                      TimePoint start) {
  Handle to;
  to.name = name;
  to.rendezvous = rendezvous;
  auto call = Call::begin({.from = INADDR_LOOPBACK,
                           .to = to,
                           .greeting = "hello",
                           .deadline = start + 10s,
                           .patience = 10s});
  EXPECT_TRUE(call.ok()) << call.status().message();
  return std::move(*call);
}

/// To whoever listens there.
inline Call beginCall(const UniqueFd& listener, const std::string& name, TimePoint start) {
  return beginCall(*transport::tcp::localEndpoint(listener.get()), name, start);
}

}  // namespace faultline::nccl
