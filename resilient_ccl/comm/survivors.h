#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "resilient_ccl/auth/job_key.h"
#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::comm {

struct SurvivorOptions {
  int rank = 0;
  auth::JobKey jobKey;
  std::uint32_t address = 0;  ///< own management address
  /// Where each process listens for this, from its start to its end: by rank.
  std::vector<transport::tcp::Endpoint> doors;
  int door = -1;  ///< the own listening socket; stays the caller's
  /// Who has neither come by then nor is known to be gone is left out.
  Duration patience = 10s;
};

/// What all that go on have heard, the same.
struct Survivors {
  std::vector<int> ranks;  ///< of the failed communicator, in order
  auth::JobKey jobKey;     ///< of those that go on: who was left out does not have it
  transport::tcp::Endpoint rendezvous;
  UniqueFd listener;  ///< at the rendezvous; of the first of them only
};

/// After a failure: finds out who is still there. Each process that goes on calls it. The first one
/// that lives gathers the others: they come to its door, or wait there until it calls this too. A
/// door at which nobody listens any more is that of a process that is gone.
///
/// At most three times `patience`. An error when those that came may not be the only ones
/// (Roster::mayGoOn), or when others have gone on without this process.
Result<Survivors> gatherSurvivors(const SurvivorOptions& options);

}  // namespace faultline::comm
