#include "resilient_ccl/nccl/call.h"

#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::nccl {

Result<Call> Call::begin(Settings settings) {
  Call call(std::move(settings));
  RETURN_IF_ERROR(call.dial());
  return call;
}

Status Call::dial() {
  ASSIGN_OR_RETURN(UniqueFd socket,
                   transport::tcp::beginConnect({settings_.from, "", 0}, settings_.to.rendezvous));
  frames_.emplace(std::move(socket));
  connected_ = false;
  return okStatus();
}

std::string Call::callee() const {
  return fmt::format("{} at {}", settings_.to.name, settings_.to.rendezvous.toString());
}

void Call::waitFor(std::vector<pollfd>& waits) const {
  if (!frames_) return;
  const short events = connected_ ? POLLIN : POLLOUT;
  waits.push_back({.fd = frames_->fd(), .events = events, .revents = 0});
}

Status Call::late(TimePoint now, std::string_view what) const {
  if (now < settings_.deadline) return okStatus();
  return errorf(Code::kDeadlineExceeded, "{} from {} within FAULTLINE_GIVE_UP={}", what, callee(),
                formatDuration(settings_.patience));
}

Result<std::optional<Answer>> Call::advance(TimePoint now) {
  const std::optional<Answer> notYet;
  if (!frames_) {
    RETURN_IF_ERROR(late(now, "nothing but an end of the connection"));
    if (now < again_) return notYet;
    RETURN_IF_ERROR(dial());
  }
  if (!connected_) {
    pollfd writable{.fd = frames_->fd(), .events = POLLOUT, .revents = 0};
    if (::poll(&writable, 1, 0) <= 0) {
      RETURN_IF_ERROR(late(now, "no answer"));
      return notYet;
    }
    RETURN_IF_ERROR(transport::tcp::connectOutcome(frames_->fd())
                        .withContext(fmt::format("call {}", callee())));
    connected_ = true;
    frames_->send(settings_.greeting);
  }
  const auto hear = [this]() -> Result<std::optional<std::string>> {
    const Result<bool> said = frames_->flush();
    auto frame = frames_->receive();  // also when it no longer listens
    if (frame.ok() && !*frame) RETURN_IF_ERROR(said.status());
    return frame;
  };
  const auto frame = hear();
  if (frame.ok() && *frame) {
    ASSIGN_OR_RETURN(Answer answer, Answer::parse(**frame));
    return std::optional(std::move(answer));
  }
  if (frame.ok()) {
    RETURN_IF_ERROR(late(now, "no answer"));
  } else {
    if (frame.status().code() == Code::kInvalidArgument) return frame.status();
    frames_.reset();
    again_ = now + kRedial;
  }
  return notYet;
}

}  // namespace faultline::nccl
