#include "injector/faults/rdma_adapter_silence.h"

#include <fmt/format.h>

namespace faultline::injector {
namespace {

// Firmware keeps counters in its own time; this is long against that.
constexpr Duration kAdapterStill = 1s;
// Fewer packets between the two looks before are no job, but connections that are kept.
constexpr std::uint64_t kLeastLoad = 100;

}  // namespace

void AdapterSilence::Watch::observe(TimePoint now, std::uint64_t passing, std::uint64_t tries) {
  if (!last_ || *last_ != passing) tries_at_last_ = tries;
  last_ = passing;
  tries_ = tries;
  passing_.observe(passing, now);
}

bool AdapterSilence::Watch::still() const { return passing_.stillFor() >= kAdapterStill; }

void AdapterSilence::setBefore(const AdapterCounts& first, const AdapterCounts& last) {
  before_ = {.sent = last.sent - first.sent,
             .received = last.received - first.received,
             .requests = last.requests - first.requests,
             .repeats = last.repeats - first.repeats};
}

void AdapterSilence::restart() {
  port_lives_ = false;
  sent_ = {};
  accepted_ = {};
  unheard_ = {};
}

bool AdapterSilence::getsRequests() const { return before_.requests >= kLeastLoad; }

void AdapterSilence::observe(TimePoint now, const AdapterCounts& counts, bool port_lives) {
  port_lives_ = port_lives;
  sent_.observe(now, counts.sent, counts.repeats + counts.duplicates);
  accepted_.observe(now, getsRequests() ? counts.requests : counts.received, counts.repeats);
  unheard_.observe(now, counts.requests + counts.sent, counts.received);
}

bool AdapterSilence::proven() const {
  if (!port_lives_) return false;
  if (out_) {
    const bool vanishes = before_.sent >= kLeastLoad && sent_.inVain();
    return vanishes && (!in_ || accepted_.still());
  }
  if (!getsRequests()) return before_.received >= kLeastLoad && accepted_.inVain();
  return unheard_.inVain() || (before_.repeats == 0 && accepted_.inVain());
}

std::string AdapterSilence::describe() const {
  std::string text = fmt::format(
      "before it, under the job's load, the port sent {} packets and received {}, {} requests "
      "reached its transport, and {} were repeated",
      before_.sent, before_.received, before_.requests, before_.repeats);
  if (out_) {
    text += fmt::format(
        "; in it the port has sent none for {:.0f} ms, in which {} requests were repeated or came "
        "again",
        sent_.stillMilliseconds(), sent_.tries());
  }
  if (in_) {
    text += fmt::format(
        "; in it {} for {:.0f} ms, in which {} were repeated",
        getsRequests() ? "no request has reached the transport" : "the port has received no packet",
        accepted_.stillMilliseconds(), accepted_.tries());
  }
  if (in_ && getsRequests()) {
    text += fmt::format(", and nothing was sent either for {:.0f} ms, in which {} packets arrived",
                        unheard_.stillMilliseconds(), unheard_.tries());
  }
  return text;
}

}  // namespace faultline::injector
