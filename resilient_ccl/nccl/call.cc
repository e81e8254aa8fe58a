#include "resilient_ccl/nccl/call.h"

#include <cerrno>
#include <utility>

#include "base/log.h"
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
  const Status dialled = call.dial(now());
  if (!dialled.ok()) return call.withDoubt(dialled);
  return call;
}

Status Call::withDoubt(const Status& failed) const {
  if (settings_.doubt.empty()) return failed;
  return errorf(failed.code(), "{} ({})", settings_.doubt, failed.message());
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
  meeting_.reset();
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
  auto outcome = goOn(now);
  if (!outcome.ok()) return withDoubt(outcome.status());
  return outcome;
}

Result<std::optional<Answer>> Call::goOn(TimePoint now) {
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
  }
  std::optional<Answer> answer;
  RETURN_IF_ERROR(hear(now, answer));
  if (!answer && frames_) RETURN_IF_ERROR(late(now, "no answer"));
  return answer;
}

/// Goes on with the conversation: a challenge, our greeting, the answer.
Status Call::hear(TimePoint now, std::optional<Answer>& answer) {
  for (;;) {
    const Result<bool> said = frames_->flush();
    auto frame = frames_->receive();  // also when it no longer listens
    if (frame.ok() && !*frame && !said.ok()) frame = said.status();
    if (!frame.ok()) {
      if (frame.status().code() == Code::kInvalidArgument) {
        distrust(frame.status().message(), now);
      } else {
        callAgain("end of the connection", now);
      }
      return okStatus();
    }
    if (!*frame) return okStatus();
    if (!meeting_) {
      auto meeting = Meeting::ofCaller(*settings_.self, settings_.to, **frame);
      if (!meeting.ok()) {
        distrust(meeting.status().message(), now);
        return okStatus();
      }
      meeting_ = std::move(*meeting);
      settings_.greeting.key = settings_.self->keys.publicKey();
      auth::fillRandom(settings_.greeting.nonce);
      frames_->send(meeting_->signGreeting(settings_.greeting.serialize()));
      continue;
    }
    const auto proved = meeting_->openAnswer(**frame);
    if (!proved) {
      distrust(settings_.self->jobKey
                   ? "it does not prove that it has the handle's token and the same FAULTLINE_KEY"
                   : "it does not prove that it has the handle's token",
               now);
      return okStatus();
    }
    ASSIGN_OR_RETURN(answer, Answer::parse(*proved));
    answer->key = meeting_->calleesKey();
    return okStatus();
  }
}

/// Somebody else may answer for the peer, which may answer later.
void Call::distrust(std::string_view why, TimePoint now) {
  if (refused_++ == 0) spdlog::warn("who answers for {} is refused: {}", callee(), why);
  callAgain(std::string(why), now);
}

}  // namespace faultline::nccl
