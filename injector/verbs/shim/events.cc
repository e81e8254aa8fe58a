#include "injector/verbs/shim/events.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

#include "injector/verbs/shim/shim.h"

namespace faultline::injector::verbs::shim {
namespace {

/// How long one look is put off while something is held back, which may be released at any moment.
constexpr Duration kWhileHolding = 1ms;
/// And while nothing is, but could be.
constexpr Duration kWhileNot = 20ms;

/// Whether a handler that has just run would have ended the real function's read(), which goes on
/// after one with SA_RESTART, as poll() never does. Nobody says which one it was: where the program
/// has some of either kind, read() is taken to go on.
bool endsRead() {
  bool any = false;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0) continue;  // the C library's own
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) continue;
    if ((action.sa_flags & SA_RESTART) != 0) return false;
    any = true;
  }
  return any;
}

/// What a look at the channel's descriptor comes to.
enum class Look { kNothing, kEvent, kInterrupted };

Look look(const ibv_comp_channel& channel, Duration patience) {
  pollfd event{channel.fd, POLLIN, 0};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  const int found = ::poll(&event, 1, static_cast<int>(std::max<std::int64_t>(ms, 0)));
  if (found > 0) return Look::kEvent;  // whatever it is: the real function says it
  return found < 0 && endsRead() ? Look::kInterrupted : Look::kNothing;
}

int getRealEvent(GetEvent* real, ibv_comp_channel* channel, ibv_cq** cq, void** cookie) {
  const int result = real(channel, cq, cookie);
  if (result == 0) Shim::instance().told(*cq);
  return result;
}

}  // namespace

int askForEvent(decltype(ContextOps::askForEvent) real, ibv_cq* cq, int solicited_only) {
  if (cq->channel == nullptr) return real(cq, solicited_only);
  Shim& shim = Shim::instance();
  shim.asks(cq);  // before: the event may come at once
  const int result = real(cq, solicited_only);
  result == 0 ? shim.asked(cq) : shim.told(cq);
  return result;
}

int getEvent(GetEvent* real, ibv_comp_channel* channel, ibv_cq** cq, void** cookie) {
  Shim& shim = Shim::instance();
  if (!shim.mayHold(*channel)) return getRealEvent(real, channel, cq, cookie);
  const bool sleeps = (::fcntl(channel->fd, F_GETFL) & O_NONBLOCK) == 0;
  if (sleeps && look(*channel, Duration(0)) == Look::kNothing) shim.sleepsInCall(*channel);
  while (shim.mayHold(*channel)) {
    Look seen = look(*channel, Duration(0));
    if (seen == Look::kNothing) {
      const std::optional<TimePoint> due = shim.nextDue(*channel);
      const TimePoint at = now();
      if (due && *due <= at) {
        ibv_cq* const ours = shim.tellOfHeld(*channel, at);
        if (ours == nullptr) continue;  // another thread was told
        *cq = ours;
        *cookie = ours->cq_context;
        return 0;
      }
      if (!sleeps) break;
      seen = look(*channel,
                  due ? std::clamp<Duration>(*due - at, Duration(0), kWhileHolding) : kWhileNot);
    }
    if (seen == Look::kEvent) break;  // what came first
    if (seen == Look::kInterrupted) {
      errno = EINTR;
      return -1;
    }
  }
  return getRealEvent(real, channel, cq, cookie);
}

void acknowledgeEvents(AcknowledgeEvents* real, ibv_cq* cq, unsigned int count) {
  const unsigned int ours = Shim::instance().acknowledged(cq, count);
  // With the last of ours the queue may be gone, with one of the device's left it is not.
  if (ours == 0 || ours < count) real(cq, count - ours);
}

}  // namespace faultline::injector::verbs::shim
