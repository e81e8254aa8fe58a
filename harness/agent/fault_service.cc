#include "harness/agent/fault_service.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <utility>
#include <variant>

#include "base/units.h"
#include "harness/agent/host_facts.h"
#include "harness/launch/local_socket.h"
#include "wire/service.h"

namespace faultline::agent {
namespace {

// It reads at once, or it hangs: an agent that waited for it would be missed by its controller.
constexpr Duration kSendBudget = 500ms;
constexpr Duration kConnectBudget = 500ms;
constexpr Duration kAnswerBudget = 5s;
// How often in a lease: a machine that is busy may be late with some of them.
constexpr int kSignsOfLife = 5;

GiveUp after(Duration budget) {
  return [deadline = now() + budget] { return now() >= deadline; };
}

}  // namespace

Result<launch::MessageChannel> connectToService(const std::string& socket) {
  Result<UniqueFd> connection = launch::connectTo(socket, kConnectBudget);
  if (connection.ok()) return launch::MessageChannel(*std::move(connection));
  if (connection.status().code() == Code::kNotFound) {
    return errorf(Code::kUnavailable,
                  "no fault service serves there ({}): its administrator starts 'faultline faultd' "
                  "(docs/administrators.md)",
                  connection.status().message());
  }
  return errorf(Code::kUnavailable,
                "its fault service cannot be asked ({}); docs/administrators.md says who may",
                connection.status().message());
}

void greet(const std::vector<std::string>& peers) {
  constexpr std::uint16_t kDiscard = 9;
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const std::string& peer : peers) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(kDiscard);
    if (::inet_pton(AF_INET, peer.c_str(), &address.sin_addr) != 1) continue;
    // One that cannot be reached is no neighbour.
    (void)::sendto(socket.get(), "", 0, MSG_DONTWAIT | MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
}

ServiceHolder::ServiceHolder(const wire::HeldFault& fault, Duration lease,
                             const std::string& socket)
    : interval_(lease / kSignsOfLife), due_(now() + interval_) {
  Result<launch::MessageChannel> service = connectToService(socket);
  trouble_ = service.status();
  if (!service.ok()) return;
  service_.emplace(std::move(*service));
  wire::ServiceStrike strike{.kind = fault.kind,
                             .parameters = fault.parameters,
                             .interface = fault.interface,
                             .longest = fault.longest,
                             .lease = lease,
                             .keep = fault.keep,
                             .run = fault.run};
  // Who has started this agent must go on reaching it.
  if (const std::string controller = reachedFrom(); !controller.empty()) {
    strike.keep.push_back(controller);
  }
  (void)send(strike);
}

Status ServiceHolder::send(const wire::ToService& message) {
  const Status sent = service_->send(wire::toJson(message), {}, after(kSendBudget));
  due_ = now() + interval_;
  // What it has said before is still read.
  return sent;
}

Status ServiceHolder::tell(const wire::ToHolder& message) {
  const auto* const call = std::get_if<wire::CallFault>(&message);
  if (call == nullptr) return errorf(Code::kInvalidArgument, "a second fault for a holder");
  if (service_) return send(*call);
  answer_ = wire::HolderAnswer{.outcome = wire::Outcome::of(trouble_)};
  return okStatus();
}

std::optional<wire::FromHolder> ServiceHolder::heard() {
  if (answer_) return std::exchange(answer_, std::nullopt);
  if (!service_) return std::nullopt;
  const auto end = [this](const std::string& why) {
    service_.reset();
    trouble_ = errorf(Code::kUnavailable, "the fault service there: {}", why);
    return wire::FromHolder(wire::Gone{trouble_.message()});
  };
  const auto message = service_->receive();
  if (!message.ok()) return end(message.status().message());
  if (!*message) return std::nullopt;
  if (wire::isGone(**message)) return end("it says of itself that it is gone");
  auto said = wire::fromJson<wire::FromService>(**message);
  if (!said.ok()) return end(said.status().message());
  if (auto* const answer = std::get_if<wire::HolderAnswer>(&*said)) return std::move(*answer);
  if (auto* const broken = std::get_if<wire::HolderBroken>(&*said)) return std::move(*broken);
  return end("it answers what it was not asked");
}

void ServiceHolder::stillThere(TimePoint now) {
  if (service_ && now >= due_) (void)send(wire::StillThere{});
}

ServiceQuestion::ServiceQuestion(const wire::AskService& question, const std::string& socket)
    : deadline_(now() + kAnswerBudget) {
  Result<launch::MessageChannel> service = connectToService(socket);
  trouble_ = service.status();
  if (!service.ok()) return;
  service_.emplace(std::move(*service));
  wire::AskService whole = question;
  if (const std::string controller = reachedFrom(); !controller.empty()) {
    whole.keep.push_back(controller);
  }
  trouble_ = service_->send(wire::toJson(wire::ToService(whole)), {}, after(kSendBudget));
}

std::optional<wire::FaultServiceTold> ServiceQuestion::answer(TimePoint now) {
  if (trouble_.ok()) {
    const auto message = service_->receive();
    if (message.ok() && *message) {
      auto said = wire::fromJson<wire::FromService>(**message);
      auto* const facts = said.ok() ? std::get_if<wire::ServiceFacts>(&*said) : nullptr;
      if (facts != nullptr) return wire::FaultServiceTold{.facts = std::move(*facts)};
      if (!said.ok()) {
        trouble_ = said.status();
      } else if (const auto* const refused = std::get_if<wire::HolderBroken>(&*said)) {
        trouble_ = refused->outcome.status();
      } else if (const auto* const gone = std::get_if<wire::Gone>(&*said)) {
        trouble_ = errorf(Code::kUnavailable, "{}", gone->message);
      }
      if (trouble_.ok()) {
        trouble_ = errorf(Code::kInvalidArgument, "it answers what it was not asked");
      }
    } else if (!message.ok()) {
      trouble_ = message.status();
    } else if (now >= deadline_) {
      trouble_ =
          errorf(Code::kDeadlineExceeded, "no answer within {}", formatDuration(kAnswerBudget));
    }
    if (trouble_.ok()) return std::nullopt;
    trouble_ = trouble_.withContext("the fault service there");
  }
  return wire::FaultServiceTold{.outcome = wire::Outcome::of(trouble_)};
}

}  // namespace faultline::agent
