#include "injector/verbs/shim/events.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "injector/verbs/shim/shim.h"

namespace faultline::injector::verbs::shim {
namespace {

/// How long one look is put off while something is held back, which may be released at any moment.
constexpr Duration kWhileHolding = 1ms;
/// And while nothing is, but could be.
constexpr Duration kWhileNot = 20ms;

bool readable(const ibv_comp_channel& channel, Duration patience) {
  pollfd event{channel.fd, POLLIN, 0};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  // Whatever it is that the descriptor has, the real function says it.
  return ::poll(&event, 1, static_cast<int>(std::max<std::int64_t>(ms, 0))) != 0;
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
  shim.asked(cq);  // before: the event may come at once
  const int result = real(cq, solicited_only);
  if (result != 0) shim.told(cq);
  return result;
}

int getEvent(GetEvent* real, ibv_comp_channel* channel, ibv_cq** cq, void** cookie) {
  Shim& shim = Shim::instance();
  if (!shim.mayHold(*channel)) return getRealEvent(real, channel, cq, cookie);
  const bool sleeps = (::fcntl(channel->fd, F_GETFL) & O_NONBLOCK) == 0;
  if (sleeps && !readable(*channel, Duration(0))) shim.sleepsInCall(*channel);
  while (shim.mayHold(*channel)) {
    if (readable(*channel, Duration(0))) break;  // what came first
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
    if (readable(*channel,
                 due ? std::clamp<Duration>(*due - at, Duration(0), kWhileHolding) : kWhileNot))
      break;
  }
  return getRealEvent(real, channel, cq, cookie);
}

void acknowledgeEvents(AcknowledgeEvents* real, ibv_cq* cq, unsigned int count) {
  real(cq, count - Shim::instance().acknowledged(cq, count));
}

}  // namespace faultline::injector::verbs::shim
