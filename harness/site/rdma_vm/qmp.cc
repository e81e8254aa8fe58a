#include "harness/site/rdma_vm/qmp.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/json.h"
#include "base/units.h"

namespace faultline::rdma_vm {

using nlohmann::json;

namespace {

constexpr std::size_t kReadSize = 4096;

std::string lineOf(const json& message) { return message.dump() + "\n"; }

}  // namespace

std::string qmpCapabilities() { return lineOf({{"execute", "qmp_capabilities"}}); }

std::string qmpSetLink(const std::string& nic, bool up) {
  return lineOf({{"execute", "set_link"}, {"arguments", {{"name", nic}, {"up", up}}}});
}

Result<std::optional<Status>> qmpAnswer(std::string_view line) {
  const Result<json> parsed = parseJson(line);
  if (!parsed.ok() || !parsed->is_object()) {
    return errorf(Code::kIo, "qemu said what is not QMP: {}", line);
  }
  const json& message = *parsed;
  if (message.contains("return")) return std::optional<Status>(okStatus());
  if (const auto error = message.find("error"); error != message.end()) {
    const std::string text =
        error->is_object() ? error->value("desc", error->dump()) : error->dump();
    return std::optional<Status>(errorf(Code::kIo, "qemu refuses: {}", text));
  }
  return std::optional<Status>();
}

Result<std::string> QmpClient::readLine(TimePoint deadline, const GiveUp& giveUp) {
  for (;;) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    const Duration left = std::min(deadline - now(), kGiveUpInterval);
    if (left <= Duration::zero()) return errorf(Code::kDeadlineExceeded, "qemu does not answer");
    RETURN_IF_ERROR(unlessGivenUp(giveUp, "an answer of qemu"));
    pollfd ready{fd_.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(toMilliseconds(left)) + 1) <= 0) continue;
    char bytes[kReadSize];
    const ssize_t size = ::recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (size > 0) {
      received_.append(bytes, static_cast<std::size_t>(size));
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
      return errorf(Code::kUnavailable, "qemu has ended");
    }
  }
}

Status QmpClient::command(const std::string& text, Duration budget, const GiveUp& giveUp) {
  const TimePoint deadline = now() + budget;
  const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(text.size())) {
    return Status::fromErrno(sent < 0 ? errno : EAGAIN, "tell qemu");
  }
  ++unanswered_;
  for (;;) {
    ASSIGN_OR_RETURN(const std::string line, readLine(deadline, giveUp));
    ASSIGN_OR_RETURN(const std::optional<Status> answer, qmpAnswer(line));
    if (!answer || --unanswered_ > 0) continue;  // that of a command that was given up
    return *answer;
  }
}

Status QmpClient::begin(Duration budget, const GiveUp& giveUp) {
  return command(qmpCapabilities(), budget, giveUp);
}

Status QmpClient::setLink(const std::string& nic, bool up, Duration budget, const GiveUp& giveUp) {
  return command(qmpSetLink(nic, up), budget, giveUp)
      .withContext(up ? "plug the cable of " + nic + " in" : "pull the cable of " + nic);
}

}  // namespace faultline::rdma_vm
