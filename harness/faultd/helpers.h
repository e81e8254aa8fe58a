#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "harness/launch/local_socket.h"
#include "harness/strike/plan.h"
#include "wire/service.h"

/// Children of the service, so that it waits for nothing itself: each does one thing, and ends with
/// its channel to the service, or when it is done. They are bodies of launch::SpawnOptions.
namespace faultline::faultd {

/// What a child is told first.
struct Task {
  std::string policy{};
  std::string journal{};
  std::int64_t pid = 0;       ///< of the client
  std::uint64_t started = 0;  ///< of that process: a later one may have its number
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> groups{};
  std::optional<wire::ServiceStrike> strike{};  ///< of a holder
  wire::AskService question{};                  ///< of who answers one
  std::vector<std::string> undo{};  ///< entries of the journal: of who undoes what was left
};

template <typename V>
void visitFields(V& v, Of<Task> auto& task) {
  v.required("policy", task.policy);
  v.required("journal", task.journal);
  v.required("pid", task.pid);
  v.required("started", task.started);
  v.required("uid", task.uid);
  v.required("groups", task.groups);
  v.required("strike", task.strike);
  v.required("question", task.question);
  v.required("undo", task.undo);
}

/// Holds a strike, and undoes it with the end of the channel, or at SIGTERM. Also where the service
/// was killed.
int holderMain();

/// Answers a question: wire::ServiceFacts.
int answerMain();

/// Undoes entries that nobody holds any more.
int undoMain();

/// A line of the log: on standard error.
void log(std::string line);

}  // namespace faultline::faultd
