#include <algorithm>
#include <cstring>
#include <utility>

#include "resilient_ccl/channel/link.h"

// Control datagrams: grants, acknowledgements, words about rails, probes.

namespace faultline::channel {
namespace {

/// Why the other end gives the job up.
Status wordOf(const Record& abort) {
  return Status(Code::kAborted, std::string(reinterpret_cast<const char*>(abort.payload.data()),
                                            abort.payload.size()));
}

}  // namespace

void Link::onDatagram(int path, const Datagram& datagram, TimePoint now) {
  if (path < 0 || path >= paths()) return;
  heard(now);
  control_.acknowledged(datagram.header.control);
  if (failed_) {
    for (const Record& record : datagram.records) {
      if (record.sequence != 0) acknowledgements_.atOnce();
      const bool isNew = record.sequence != 0 && control_.accept(record.sequence);
      if (isNew && record.type == RecordType::kAbort) io_.linkFailed(wordOf(record));
    }
    return;
  }
  const int known = std::min<int>(options_.rails, static_cast<int>(datagram.rails.size()));
  for (int rail = 0; rail < known; ++rail) {
    const RailReceipt& receipt = datagram.rails[rail];
    const Rail& state = rails_[rail];
    if (state.phase != Phase::kUp || !receipt.isOf(state.epoch)) continue;
    acknowledge(rail, receipt.after(state.acknowledged), now);
  }
  // After the receipts: progress that they tell of was before what this datagram shows to be lost.
  traffic_[path].arrivals.note(datagram.header.number, now);
  traffic_[path].gapsThere = std::max(traffic_[path].gapsThere, datagram.header.gaps);
  bool triesPath = false;
  for (const Record& record : datagram.records) {
    if (record.sequence != 0) {
      const bool isNew = control_.accept(record.sequence);
      // Also for a repetition: its acknowledgement may be lost.
      const bool grants = record.type == RecordType::kGrant || record.type == RecordType::kGrants;
      acknowledgeRecord(/*mayWait=*/isNew && grants, now);
      if (!isNew) continue;
    }
    switch (record.type) {
      case RecordType::kGrant:
        if (const auto grant = payloadAs<GrantRecord>(record); grant.ok())
          grantArrived(*grant, now);
        break;
      case RecordType::kGrants:
        if (const auto grants = payloadAs<GrantsRecord>(record); grants.ok()) {
          for (std::uint32_t i = 0; i < grants->count && !failed_; ++i)
            grantArrived(grants->at(i), now);
        }
        break;
      case RecordType::kRailFailed:
      case RecordType::kRailFenced:
        if (const auto word = payloadAs<RailRecord>(record); word.ok()) {
          peerGaveUp(*word, record.type == RecordType::kRailFenced, now);
        }
        break;
      case RecordType::kProbe:
        if (const auto probe = payloadAs<ProbeRecord>(record); probe.ok()) {
          noteLife(path, now);
          replies_.emplace_back(
              path, ProbeReplyRecord{.round = probe->round, .frame = probe->frame, .heard = {}});
          if (probe->frame != 0) break;  // the short one of its round says the rest
          prober_.heard(path, probe->round);
          if (probe->trial != 0) {
            probeUntil(now + kAssistRounds * options_.suspectProbeInterval, now);
            triesPath = triesPath || probe->trial == ProbeRecord::kThisPath;
          }
        }
        break;
      case RecordType::kProbeReply:
        if (const auto reply = payloadAs<ProbeReplyRecord>(record); reply.ok()) {
          prober_.reported(reply->heard);
          probeAnswered(path, *reply, now);
          pathAnswered(path, now);
        }
        break;
      case RecordType::kNote:
        io_.noteArrived(record.payload);
        break;
      case RecordType::kAbort:
        fail(wordOf(record));
        break;
      case RecordType::kTooLong:
        if (const auto word = payloadAs<TooLongRecord>(record); word.ok())
          receiveTooLong(*word, now);
        break;
      case RecordType::kReceivesClosed:
        if (const auto word = payloadAs<StreamRecord>(record); word.ok())
          receivesClosedThere(*word, record.sequence, now);
        break;
      case RecordType::kSendsEnded:
        if (const auto word = payloadAs<StreamRecord>(record); word.ok())
          sendsEndedThere(*word, now);
        break;
    }
    if (failed_) return;
  }
  if (triesPath) answerTrial(path);
  forgetStreams();
  compareRates(now);
  pump(now);
}

void Link::probeAnswered(int path, const ProbeReplyRecord& reply, TimePoint now) {
  FrameTrial* const frames = path < options_.rails ? &rails_[path].frames : nullptr;
  if (reply.frame != 0) {
    if (frames == nullptr) return;
    if (frames->answered(reply.round)) rails_[path].framesTold = false;
    return;
  }
  if (frames != nullptr) {
    if (const auto sentAt = prober_.sentAt(reply.round)) frames->shortAnswered(*sentAt);
  }
  prober_.answered(path, reply.round, now);
}

/// Not where this end tries the rail, too: it would take the word for something that it waits for.
void Link::answerTrial(int path) {
  if (path == options_.rails) return;
  const Rail& state = rails_[path];
  if (state.phase == Phase::kUp && !state.suspected) io_.tellRoom(path);
}

void Link::grant(const GrantRecord& record, TimePoint now) {
  if (options_.smallMessage == 0) {
    control_.send(RecordType::kGrant, bytesOf(record), /*urgent=*/false);
    return;
  }
  if (pacing_.add(record, AcknowledgementPacing::kDelay, now)) releaseGrants();
}

void Link::releaseGrants() {
  const std::vector<GrantRecord> grants = pacing_.take();
  for (auto grant = grants.begin(); grant != grants.end();) {
    GrantsRecord together;
    while (grant != grants.end() && together.add(*grant)) ++grant;
    if (together.count > 0) {
      control_.send(RecordType::kGrants, bytesOf(together), /*urgent=*/false);
    } else {
      control_.send(RecordType::kGrant, bytesOf(*grant++), /*urgent=*/false);
    }
  }
}

/// The peer has used the slot's grant, or it was withdrawn.
void Link::grantTaken(const Slot& slot, std::optional<bool> byShort) {
  if (pacing_.taken(streamOf(slot.key), byShort)) releaseGrants();
}

void Link::grantArrived(const GrantRecord& grant, TimePoint now) {
  const auto waiting = awaitingGrant_.find(grant.key);
  if (waiting == awaitingGrant_.end()) {
    if (sendStreams_.contains(streamOf(grant.key))) return;
    grants_[grant.key] = grant;
    if (grants_.size() > kMostEarlyGrants) {
      fail(errorf(Code::kInvalidArgument, "{} grants {} messages that nobody has sent",
                  identity_.name, grants_.size()));
    }
    return;
  }
  const std::uint64_t id = waiting->second;
  awaitingGrant_.erase(waiting);
  enqueueMessage(id, sends_.at(id), grant, now);
}

void Link::acknowledgeRecord(bool mayWait, TimePoint now) {
  if (mayWait && options_.smallMessage > 0) {
    acknowledgements_.grants(now);
  } else {
    acknowledgements_.atOnce();
  }
}

void Link::sendRailRecord(RecordType type, int rail, std::uint32_t epoch, const Receipt& held,
                          const Failure& failure) {
  const RailRecord record{.rail = static_cast<std::uint32_t>(rail),
                          .epoch = epoch,
                          .held = held,
                          .cause = static_cast<std::uint8_t>(failure.cause),
                          .deadDirection = static_cast<std::uint8_t>(failure.direction),
                          .stalled = failure.stalled,
                          .frame = static_cast<std::uint32_t>(failure.frame)};
  control_.send(type, bytesOf(record), /*urgent=*/true);
}

void Link::sendNote(std::span<const std::byte> note) {
  if (!failed_) control_.send(RecordType::kNote, note, /*urgent=*/true);
}

void Link::sendAbort(const std::string& reason) {
  const auto text = std::as_bytes(std::span(reason));
  control_.send(RecordType::kAbort, text.first(std::min(text.size(), Record::kMaxPayload)),
                /*urgent=*/true);
}

void Link::onTick(TimePoint now) {
  if (failed_) return;
  // Who stood still could hear nobody: the budget begins anew.
  const Duration absence = std::max(options_.giveUp / 2, 2 * options_.idleProbeInterval);
  if (now - lastTick_ > absence) busySince_ = now;
  lastTick_ = now;
  checkSuspicions(now);
  checkProofs(now);
  for (int rail = 0; rail < options_.rails; ++rail) considerReturn(rail, now);
  probe(now);
  checkDoubt();
  checkBudget(now);
}

void Link::probeUntil(TimePoint end, TimePoint now) {
  if (nextRound_ > now + options_.suspectProbeInterval) nextRound_ = now;
  probeUntil_ = std::max(probeUntil_, end);
}

/// A path that was dead carries something again: it is asked at once, not when its turn comes, up
/// to a second later. By the first probe after a silence only: where nothing but the other
/// direction is lost the peer's probes come for ever. Silent is a path on which none came for
/// longer than the peer, which probes at the same pace, lets it wait.
void Link::noteLife(int path, TimePoint now) {
  if (path == options_.rails) return;
  const TimePoint before = std::exchange(rails_[path].probed, now);
  if (now - before > 2 * returnProbeInterval(path, now)) askSoon(path, now);
}

/// As far as it is not asked often anyway; no sooner than a path that answers would be.
void Link::askSoon(int rail, TimePoint now) {
  const Rail& state = rails_[rail];
  if (state.phase != Phase::kDown || !state.portUp || answering(rail, now)) return;
  nextRound_ = std::min(nextRound_, std::max(now, lastRound_ + answeringInterval()));
}

std::uint32_t Link::examine(TimePoint now) {
  probeUntil(now + kExamination, now);
  return prober_.round();
}

Reach Link::reach(int path, std::uint32_t after) const {
  const bool asked = !failed_ && (path == options_.rails || rails_[path].portUp);
  return asked ? prober_.reach(path, after) : Reach::kUnknown;
}

Duration Link::probeInterval(TimePoint now) const {
  if (!options_.resilient) {
    // No verdicts, but a lost acknowledgement must be asked for: every answer carries receipts.
    const bool open =
        std::ranges::any_of(rails_, [](const Rail& rail) { return !rail.inFlight.empty(); });
    return open ? options_.idleProbeInterval : Duration::max();
  }
  Duration interval = busy() || doubted_ ? options_.idleProbeInterval : Duration::max();
  if (now < probeUntil_) interval = std::min(interval, options_.suspectProbeInterval);
  if (asksForProof(options_.rails, now)) interval = std::min(interval, PathProof::kInterval);
  for (int rail = 0; rail < options_.rails; ++rail) {
    const Rail& state = rails_[rail];
    if (asksForProof(rail, now)) interval = std::min(interval, PathProof::kInterval);
    const bool mayReturn = state.phase == Phase::kDown || state.phase == Phase::kFencing;
    if (state.phase == Phase::kUp && state.suspected) {
      interval = std::min(interval, options_.suspectProbeInterval);
    } else if (mayReturn && !awaited(state) && state.portUp) {
      interval = std::min(interval, returnProbeInterval(rail, now));
    }
  }
  return interval;
}

/// A path that answers is asked often, to have it back soon, and at the pace of a trial while there
/// is no rail; one that has been silent for long seldom, so that an outage of hours costs next to
/// nothing and is prolonged by a hundredth.
Duration Link::returnProbeInterval(int rail, TimePoint now) const {
  if (answering(rail, now) && !rails_[rail].framesLost) return answeringInterval();
  constexpr int kShareOfOutage = 100;
  return std::clamp((now - rails_[rail].failedAt) / kShareOfOutage, options_.returnProbeInterval,
                    std::max(options_.returnProbeInterval, options_.longestReturnInterval));
}

/// The path of a rail that is down answers, and has not stopped since.
bool Link::answering(int rail, TimePoint now) const {
  const Duration old = std::max(kAnswersAreOld, 4 * options_.returnProbeInterval);
  return prober_.answeredInARow(rail) > 0 && now - prober_.lastAnswer(rail) <= old;
}

Duration Link::answeringInterval() const {
  const bool needed = liveRails() == 0;
  return needed ? std::min(options_.suspectProbeInterval, options_.returnProbeInterval)
                : options_.returnProbeInterval;
}

void Link::probe(TimePoint now) {
  const Duration interval = probeInterval(now);
  if (interval == Duration::max()) {
    nextRound_ = TimePoint::max();
    return;
  }
  if (nextRound_ == TimePoint::max() || nextRound_ > now + interval) nextRound_ = now + interval;
  if (now < nextRound_) return;
  nextRound_ = now + interval;
  lastRound_ = now;
  bool trial = false;
  for (int rail = 0; rail < options_.rails; ++rail) {
    Rail& state = rails_[rail];
    if (!state.suspected) continue;
    trial = true;
    watchDelivery(rail, now);
  }
  const std::uint32_t round = prober_.beginRound(now);
  for (int rail = 0; rail < options_.rails; ++rail) {
    if (rails_[rail].portUp && options_.resilient) tryFrame(rail, round, now);
  }
  // Suspects first, so that an answer on another path is to a later probe also within a round.
  for (const bool suspects : {true, false}) {
    for (int path = 0; path < paths(); ++path) {
      const bool isRail = path < options_.rails;
      if (isRail && (!rails_[path].portUp || !options_.resilient)) continue;
      if ((isRail && rails_[path].suspected) != suspects) continue;
      const std::uint32_t tried = suspects ? ProbeRecord::kThisPath : trial ? 1 : 0;
      probes_.push_back({path, {.round = round, .trial = tried}});
      ++counters_.probesSent;
    }
  }
}

/// The next rail in turn that is not in doubt, and carries datagrams: the control class of one port
/// is small, and what a path loses before anybody knows is the share of one.
int Link::controlPath() const {
  // Without resilience nobody notices a dead rail: control must not depend on one, or what is in
  // flight on the others would wait for acknowledgements that never come.
  if (!options_.resilient) return options_.rails;
  for (int step = 1; step <= options_.rails; ++step) {
    const int rail = (lastControlPath_ + step) % options_.rails;
    const bool good = rails_[rail].phase == Phase::kUp && !rails_[rail].suspected;
    if (good && !proofs_[rail].told()) return rail;
  }
  return options_.rails;
}

void Link::flush(TimePoint now) {
  outgoing_.clear();
  // Those that wait go along with whatever goes.
  const bool acknowledges = now >= acknowledgements_.due();
  const bool goes = acknowledges || now >= pacing_.due() || !probes_.empty() || !replies_.empty();
  if (goes && pacing_.waits()) releaseGrants();
  const int inTurn = controlPath();
  control_.collect(now, inTurn, [&](const Record& record, int turn, bool urgent) {
    if (!urgent) {
      outgoing_.push_back({options_.resilient ? turn % paths() : inTurn, record});
      return;
    }
    for (int path = 0; path < paths(); ++path) outgoing_.push_back({path, record});
  });
  for (const auto& [path, probe] : probes_) {
    outgoing_.push_back({path, {RecordType::kProbe, 0, bytesOf(probe)}, probe.frame});
  }
  for (auto& [path, reply] : replies_) {
    reply.heard = prober_.heardHere();
    outgoing_.push_back({path, {RecordType::kProbeReply, 0, bytesOf(reply)}, reply.frame});
  }
  if (outgoing_.empty() && !acknowledges) return;
  if (inTurn < options_.rails) lastControlPath_ = inTurn;

  receipts_.clear();
  for (Rail& state : rails_) {
    receipts_.push_back(RailReceipt::of(state.epoch, state.received));
  }
  DatagramHeader header{
      .source = identity_.self, .destination = identity_.peer, .control = control_.received()};
  for (int path = 0; path < paths(); ++path) {
    header.path = static_cast<std::uint8_t>(path);
    bool open = acknowledges && path == inTurn;
    header.gaps = traffic_[path].arrivals.gaps();
    const auto begin = [&] {
      header.number = ++traffic_[path].sent;
      writer_.begin(header, receipts_);
    };
    const auto send = [&](Bytes frame = 0) {
      io_.sendDatagram(path, writer_.finish(), frame);
      ++counters_.datagramsSent;
    };
    // Full ones before short ones, and alone: nothing else is lost with them.
    for (const Outgoing& outgoing : outgoing_) {
      if (outgoing.path != path || outgoing.frame == 0) continue;
      begin();
      writer_.add(outgoing.record);
      send(outgoing.frame);
    }
    if (open) begin();
    for (const Outgoing& outgoing : outgoing_) {
      if (outgoing.path != path || outgoing.frame != 0) continue;
      if (!open) begin();
      open = true;
      if (writer_.add(outgoing.record)) continue;
      send();
      begin();
      writer_.add(outgoing.record);
    }
    if (open) send();
  }
  acknowledgements_.sent();
  probes_.clear();
  replies_.clear();
}

TimePoint Link::nextDeadline() const {
  if (failed_) return control_.nextDeadline();
  TimePoint next =
      std::min({control_.nextDeadline(), nextRound_, acknowledgements_.due(), pacing_.due()});
  for (const Rail& state : rails_) {
    if (state.phase == Phase::kUp && !state.inFlight.empty() && !state.suspected &&
        options_.resilient) {
      next = std::min(next, suspectAt(state));
    }
    if (state.phase == Phase::kDown && identity_.connects && state.portUp &&
        (awaited(state) || !options_.resilient)) {
      next = std::min(next, state.mayReturn);
    }
  }
  return next;
}

}  // namespace faultline::channel
