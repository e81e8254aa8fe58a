#include "wire/message.h"

#include <cstddef>
#include <utility>

#include "base/json_schema.h"
#include "base/units.h"
#include "wire/agent.h"
#include "wire/guard.h"
#include "wire/guest.h"
#include "wire/rank.h"
#include "wire/service.h"

namespace faultline::wire {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json schemaOf() {
  return JsonSchemaOf<Json, Strictness::kExact>::of(T{});
}

}  // namespace

bool isGone(const nlohmann::json& message) {
  const auto type = message.is_object() ? message.find(kTypeKey) : message.end();
  return type != message.end() && *type == Gone::kType;
}

Status checkVersion(const nlohmann::json& first, int ours) {
  int theirs = 0;
  const auto found = first.is_object() ? first.find("version") : first.end();
  if (found == first.end()) {
    return errorf(Code::kInvalidArgument, "version: is missing in the first message");
  }
  RETURN_IF_ERROR(JsonReader<nlohmann::json>::read(*found, "version", theirs));
  if (theirs == ours) return okStatus();
  return errorf(Code::kInvalidArgument,
                "the other end speaks version {} of the messages, and this program version {}: use "
                "the same build of faultline for all processes",
                theirs, ours);
}

namespace {

Status refuseSuccess(Code code) {
  if (code != Code::kOk) return okStatus();
  return errorf(Code::kInvalidArgument, "an error whose code is success");
}

}  // namespace

Status checkFields(const Error& error) { return refuseSuccess(error.code); }
Status checkFields(const GuardError& error) { return refuseSuccess(error.outcome.code); }
Status checkFields(const HolderBroken& broken) { return refuseSuccess(broken.outcome.code); }
Status checkFields(const JobRefused& refused) { return refuseSuccess(refused.outcome.code); }

Status checkFields(const ServiceStrike& strike) {
  for (const auto& [name, length] :
       {std::pair("longest", strike.longest), std::pair("lease", strike.lease)}) {
    if (length > Duration(0)) continue;
    return errorf(Code::kInvalidArgument, "{}: a strike needs one, or nobody would end it", name);
  }
  if (strike.lease > kLongestLease) {
    return errorf(Code::kInvalidArgument, "lease: {} at most", formatDuration(kLongestLease));
  }
  return okStatus();
}

Status checkFields(const Trace& trace) {
  const std::size_t events = trace.kind.size();
  for (const std::size_t size : {trace.peer.size(), trace.rail.size(), trace.at.size(),
                                 trace.length.size(), trace.bytes.size(), trace.number.size()}) {
    if (size == events) continue;
    return errorf(Code::kInvalidArgument, "lists of {} and of {} events", events, size);
  }
  return okStatus();
}

Json schema() {
  return {{"$schema", "http://json-schema.org/draft-07/schema#"},
          {"title", "messages between processes of faultline"},
          {"description",
           "Moments and durations are nanoseconds. What the fields mean stands in the headers of "
           "the folder wire."},
          {"version", kVersion},
          {"agent_version", kAgentVersion},
          {"definitions",
           {{"controller_to_rank", schemaOf<ToRank>()},
            {"rank_to_controller", schemaOf<FromRank>()},
            {"controller_to_guard", schemaOf<ToGuard>()},
            {"guard_to_controller", schemaOf<FromGuard>()},
            {"controller_to_agent", schemaOf<ToAgent>()},
            {"agent_to_controller", schemaOf<FromAgent>()},
            {"controller_to_guest", schemaOf<ToGuest>()},
            {"guest_to_controller", schemaOf<FromGuest>()},
            {"controller_to_holder", schemaOf<ToHolder>()},
            {"holder_to_controller", schemaOf<FromHolder>()},
            {"client_to_service", schemaOf<ToService>()},
            {"service_to_client", schemaOf<FromService>()},
            {"controller_to_machine_room", schemaOf<ToRoom>()},
            {"machine_room_to_controller", schemaOf<FromRoom>()}}}};
}

}  // namespace faultline::wire
