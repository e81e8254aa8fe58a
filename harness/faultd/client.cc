#include "harness/faultd/client.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/units.h"
#include "harness/strike/left_strikes.h"
#include "injector/safety/entry.h"

namespace faultline::faultd {
namespace {

/// Others must have their turn.
constexpr int kMessagesOfTurn = 16;
/// Of the name of a run, in a line of the log.
constexpr std::size_t kMostRunName = 64;
/// Between two looks whether a child that is to end hangs.
constexpr Duration kHangLook = 250ms;
/// For a child that is to end, whatever it does. One whose command of the policy takes longer is
/// killed, and the rest is done from the journal: the command is run again then.
constexpr Duration kLongestEnd = strike::kAroundStrike + 60s;

}  // namespace

Client::Client(UniqueFd fd, launch::LocalPeer peer, Task task, const safety::Journal& journal,
               TimePoint connected)
    : channel_(std::move(fd)),
      peer_(std::move(peer)),
      task_(std::move(task)),
      journal_(journal),
      dialogue_(connected) {
  channel_.distrust(kLargestMessage);
}

void Client::addTo(std::vector<pollfd>& ready) const {
  if (!ended_at_) ready.push_back({channel_.fd(), POLLIN, 0});
  if (child_) ready.push_back({child_->pidFd(), POLLIN, 0});
  if (child_hears_)
    ready.push_back({const_cast<launch::Process&>(*child_).messages().fd(), POLLIN, 0});
}

std::optional<TimePoint> Client::due(TimePoint now) const {
  if (ended_at_) return std::max(next_look_, now);
  return dialogue_.due();
}

bool Client::goOn(TimePoint now, const std::function<Status()>& mayStart) {
  bool more = false;
  if (child_) more = hearChild(now);
  if (!ended_at_) more = hearClient(now, mayStart) || more;
  if (!ended_at_) {
    // Its holder may be with the command that the policy runs after it.
    if (dialogue_.outlasts(now) && !stillLasts()) dialogue_.lapsed();
    if (const auto why = dialogue_.overdue(now)) end(*why, now);
  }
  awaitChild(now);
  if (ended_at_ && !child_ && !over_) {
    if (!client_gone_ && !why_.ok()) {  // of one that does not read nothing is waited for
      (void)channel_.send(
          wire::toJson(wire::FromService(wire::HolderBroken{wire::Outcome::of(why_)})), {},
          [] { return true; });
    }
    over_ = true;
  }
  return more && !over_;
}

bool Client::hearClient(TimePoint now, const std::function<Status()>& mayStart) {
  for (int i = 0; i < kMessagesOfTurn && !ended_at_; ++i) {
    const auto message = channel_.receive();
    if (message.status().code() == Code::kUnavailable) {
      client_gone_ = true;
      if (dialogue_.struck()) note("its connection was closed");
      end(okStatus(), now);
      return false;
    }
    if (!message.ok()) {
      end(errorf(Code::kInvalidArgument, "{}", message.status().message()), now);
      return false;
    }
    if (!*message) return false;
    const auto said = dialogue_.take(**message, now);
    if (said.ok()) {
      obey(*said, mayStart, now);
    } else {
      end(said.status(), now);
    }
  }
  return true;
}

void Client::obey(const wire::ToService& said, const std::function<Status()>& mayStart,
                  TimePoint now) {
  if (const auto* const strike = std::get_if<wire::ServiceStrike>(&said)) {
    task_.strike = *strike;
    start(holderMain, mayStart, now);
  } else if (const auto* const question = std::get_if<wire::AskService>(&said)) {
    task_.question = *question;
    start(answerMain, mayStart, now);
  } else if (const auto* const call = std::get_if<wire::CallFault>(&said)) {
    const Status told = child_->messages().send(wire::toJson(wire::ToHolder(*call)));
    if (!told.ok()) end(told, now);
  }
}

void Client::start(int (*body)(), const std::function<Status()>& mayStart, TimePoint now) {
  if (Status may = mayStart(); !may.ok()) {
    end(std::move(may), now);
    return;
  }
  launch::SpawnOptions options;
  options.body = body;
  options.first_message = wire::toJson(task_);
  auto spawned = launch::Process::spawn(options);
  if (!spawned.ok()) {
    end(spawned.status(), now);
    return;
  }
  child_.emplace(*std::move(spawned));
  child_hears_ = true;
}

bool Client::hearChild(TimePoint now) {
  for (int i = 0; i < kMessagesOfTurn && child_hears_; ++i) {
    const auto message = child_->messages().receive();
    if (!message.ok()) {
      child_hears_ = false;  // its end is seen by its process
      return false;
    }
    if (!*message) return false;
    const auto said = wire::fromJson<wire::FromService>(**message);
    if (!said.ok()) {
      end(said.status(), now);
      return false;
    }
    if (const auto* const answer = std::get_if<wire::HolderAnswer>(&*said)) {
      if (!answer->outcome.status().ok()) note(answer->outcome.message);
      if (const Status known = dialogue_.answered(*answer, now); !known.ok()) end(known, now);
    } else if (const auto* const broken = std::get_if<wire::HolderBroken>(&*said)) {
      note(broken->outcome.message);
    }
    tell(**message, now);
    // Its answer is all that a question gets.
    if (std::holds_alternative<wire::ServiceFacts>(*said)) end(okStatus(), now);
  }
  return true;
}

void Client::tell(const nlohmann::json& message, TimePoint now) {
  if (client_gone_ || ended_at_) return;
  const Status told = channel_.send(message, {}, [] { return true; });
  if (told.ok()) return;
  client_gone_ = true;
  end(errorf(Code::kUnavailable, "it does not read what it is told"), now);
}

void Client::end(Status why, TimePoint now) {
  if (ended_at_) return;
  if (!why.ok()) note(why.message());
  ended_at_ = now;
  next_look_ = now;
  why_ = std::move(why);
  if (!child_) return;
  // By which it takes back what it holds.
  child_->messages() = launch::MessageChannel(UniqueFd());
  child_hears_ = false;
}

void Client::displace(Status why, TimePoint now) {
  end(std::move(why), now);
  if (child_) (void)child_->signal(SIGKILL);
}

void Client::awaitChild(TimePoint now) {
  if (!child_) return;
  const auto ended = child_->tryWait();
  if (ended.ok() && *ended) {
    const launch::ExitStatus how = **ended;
    while (child_hears_ && hearChild(now)) {  // its last words
    }
    child_.reset();
    child_hears_ = false;
    if (!ended_at_) {
      may_have_left_ = true;
      end(errorf(Code::kUnavailable, "the process that served it has ended ({}){}", how.toString(),
                 dialogue_.strike() == nullptr
                     ? ""
                     : "; what it may have changed is being taken back: 'faultline status' says "
                       "whether that is done"),
          now);
    } else if (!how.ok()) {
      may_have_left_ = true;
    }
    return;
  }
  if (!ended_at_ || now < next_look_) return;
  next_look_ = now + kHangLook;
  const pid_t pid = child_->pid();
  const bool late = now > *ended_at_ + safety::kUndoGrace;
  const bool hangs =
      safety::isStopped(pid) || now > *ended_at_ + kLongestEnd || (late && stillLasts());
  if (!hangs) return;
  if (!std::exchange(killed_, true))
    note(fmt::format("process {}, which holds it, hangs and is killed", pid));
  (void)child_->signal(SIGKILL);
}

bool Client::stillLasts() const {
  if (!child_) return false;
  const safety::Holder holder = safety::holderOf(child_->pid());
  return strike::stillLasts(journal_,
                            [&](const safety::Entry& entry) { return entry.holder == holder; });
}

void Client::note(const std::string& what) const {
  const wire::ServiceStrike* const strike = dialogue_.strike();
  log(fmt::format(
      "process {} of user {}{}: {}", peer_.pid, peer_.uid,
      strike == nullptr
          ? std::string()
          : fmt::format(", {} of {}{}", strike->kind, strike->interface,
                        strike->run.empty() ? "" : " for " + strike->run.substr(0, kMostRunName)),
      what));
}

}  // namespace faultline::faultd
