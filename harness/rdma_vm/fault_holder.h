#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "harness/launch/message_channel.h"
#include "injector/fault.h"

namespace faultline::rdma_vm {

/// A fault inside of a guest.
struct HeldFault {
  std::string kind;
  std::map<std::string, std::string> parameters;  ///< as a scenario writes them
  int rail = 0;                                   ///< not of faults of queue pairs
  /// Of faults of queue pairs: as netlink::LinkTarget::startedWith.
  std::string startedWith{};
};

nlohmann::json toJson(const HeldFault& fault);
/// kInvalidArgument when something is missing.
Result<HeldFault> heldFaultFromJson(const nlohmann::json& json);

/// What the controller asks a holder to do: the calls of injector::Fault.
enum class HolderCall { kPrepare, kApply, kEvidence, kRevert };

/// What comes back, once for each call.
struct HolderAnswer {
  Status status;
  std::string mechanism;
  std::size_t changes = 0;           ///< injector::Fault::transitions() so far
  Duration since{};                  ///< from the end of the latest of them to this answer
  std::optional<Duration> lapsed{};  ///< the same from injector::Fault::lapsedAt()
  injector::Evidence evidence;       ///< of kEvidence
};

nlohmann::json toJson(HolderCall call);
nlohmann::json toJson(const HolderAnswer& answer);
Result<HolderCall> holderCallFromJson(const nlohmann::json& json);
Result<HolderAnswer> holderAnswerFromJson(const nlohmann::json& json);
/// The error of {type: broken}.
Status brokenFromJson(const nlohmann::json& json);

/// As a guest makes it; `network` is its network namespace, in which programs are looked for. An
/// error when it has no such fault, or not with these parameters.
Result<std::unique_ptr<injector::Fault>> makeHeldFault(const HeldFault& held, int network);

/// Keeps a fault, or why it could not be made, which then is each answer, for a controller, until
/// the channel closes; the fault is taken back with its object.
Status holdFault(launch::MessageChannel& controller,
                 Result<std::unique_ptr<injector::Fault>> fault);

/// What a child of the agent does: keeps one fault of injector/faults in a guest, for a
/// controller outside (guest_fault.h). It runs beside the programs, and not among them, so that it
/// sees all of them and is none. Takes the fault back when its channel closes. Needs the
/// descriptors of launch::Process. Messages that it understands:
///   HeldFault                      first of all
///   HolderCall                     answered by one HolderAnswer
/// that it sends:
///   HolderAnswer
///   {type: broken, code, message}  what the fault does over time has failed
int faultHolderMain();

}  // namespace faultline::rdma_vm
