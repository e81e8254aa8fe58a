#include "harness/faultd/question.h"

#include <utility>
#include <variant>

#include "harness/launch/local_socket.h"
#include "harness/launch/message_channel.h"

namespace faultline::faultd {

Result<wire::ServiceFacts> askService(const std::string& socket,
                                      const std::vector<std::string>& interfaces, Duration budget) {
  ASSIGN_OR_RETURN(UniqueFd fd, launch::connectTo(socket, budget));
  launch::MessageChannel service(std::move(fd));
  RETURN_IF_ERROR(
      service.send(wire::toJson(wire::ToService(wire::AskService{.interfaces = interfaces}))));
  ASSIGN_OR_RETURN(const nlohmann::json answer, service.receiveWithin(budget));
  ASSIGN_OR_RETURN(auto said, wire::fromJson<wire::FromService>(answer));
  if (auto* const facts = std::get_if<wire::ServiceFacts>(&said)) return std::move(*facts);
  const auto* const broken = std::get_if<wire::HolderBroken>(&said);
  if (broken != nullptr) return broken->outcome.status();
  return errorf(Code::kIo, "the fault service has answered something else");
}

}  // namespace faultline::faultd
