#include "resilient_ccl/nccl/call.h"

#include <cerrno>
#include <utility>

#include "resilient_ccl/transport/tcp/socket.h"

namespace faultline::nccl {
namespace {

/// Something on the way is broken, unlike where nobody listens any more.
bool mayPass(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == ETIMEDOUT;
}

}  // namespace

Result<Call> Call::begin(Settings settings) {
  Call call(std::move(settings));
  RETURN_IF_ERROR(call.dial(now()));
  return call;
}

Status Call::dial(TimePoint now) {
  auto socket = transport::tcp::beginConnect({settings_.from, "", 0}, settings_.to.rendezvous);
  // Without a word from the other end, this is of the way there.
  if (!socket.ok() && socket.status().code() == Code::kUnavailable) {
    callAgain(socket.status().message(), now);
    return okStatus();
  }
  RETURN_IF_ERROR(socket.status());
  frames_.emplace(*std::move(socket));
  connected_ = false;
  return okStatus();
}

void Call::callAgain(std::string because, TimePoint now) {
  frames_.reset();
  ended_ = std::move(because);
  again_ = now + kRedial;
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
    RETURN_IF_ERROR(late(now, "nothing but '" + ended_ + "'"));
    if (now < again_) return notYet;
    RETURN_IF_ERROR(dial(now));
    if (!frames_) return notYet;
  }
  if (!connected_) {
    pollfd writable{.fd = frames_->fd(), .events = POLLOUT, .revents = 0};
    if (::poll(&writable, 1, 0) <= 0) {
      RETURN_IF_ERROR(late(now, "no answer"));
      return notYet;
    }
    if (const int error = transport::tcp::connectError(frames_->fd()); error != 0) {
      Status failed = Status::fromErrno(error, "connect");
      if (!mayPass(error)) return failed.withContext(fmt::format("call {}", callee()));
      callAgain(failed.message(), now);
      return notYet;
    }
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
    callAgain("end of the connection", now);
  }
  return notYet;
}

}  // namespace faultline::nccl
