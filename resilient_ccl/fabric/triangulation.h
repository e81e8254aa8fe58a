#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "resilient_ccl/channel/prober.h"
#include "resilient_ccl/channel/wire.h"

namespace faultline::fabric {

using channel::Reach;
using channel::Where;

/// What one witness contributes about a dead path between this process and a peer over one rail.
struct Sight {
  int witness = 0;
  Reach mine = Reach::kUnknown;    ///< whether the witness answers this process over the rail
  Reach theirs = Reach::kUnknown;  ///< whether the peer answers the witness over the rail
};

/// Where the damage is when a path to a peer is dead although no port said so.
///
///   a witness answers this process, and | the peer answers a witness, and | damage
///   the peer answers one, too           |                                 | between the two
///   the peer is silent to this one      | none is known that it answers   | at the peer
///   none is known that does             | that is silent to this process  | at this end
///
/// Otherwise unknown: the rail's network, or both ends, or nobody who can tell. A witness that
/// answers neither end may be damaged itself and proves nothing.
Where locate(std::span<const Sight> sights);

/// What a triangulation asks for. None of these may call it back before it has returned.
class TriangulationIo {
 public:
  virtual ~TriangulationIo() = default;
  /// Probes all paths to `peer` for a while: the round that was the latest before.
  virtual std::uint32_t examine(int peer) = 0;
  /// What the rounds after `after` tell of `rail` to `peer`; of kAnyPath only whether it answers.
  virtual Reach reach(int peer, int rail, std::uint32_t after) const = 0;
  /// Whether `process` can be asked, and has a path over `rail`.
  virtual bool reachable(int process, int rail) const = 0;
  /// Asks `witness` whether `about` answers it over `rail`.
  virtual void ask(int witness, int about, int rail) = 0;
  /// Answers a question.
  virtual void answer(int asker, int about, int rail, Reach reach) = 0;
  virtual void located(int peer, int rail, Where where) = 0;
  /// Whether `peer` answers anybody who was asked.
  virtual void sought(int peer, Reach reach) = 0;
};

/// Finds out where a path is broken, by asking third processes; and is such a third process for
/// others. Nothing waits for it: repair begins at once, and the place is reported later. Pure: no
/// clock, no socket.
class Triangulation {
 public:
  /// Witnesses that are asked: enough to outvote one that is damaged itself, whatever the size of
  /// the job.
  static constexpr int kMostWitnesses = 3;
  /// When the one who asks decides with what it has.
  static constexpr Duration kDeadline = 200ms;
  /// A witness answers as soon as it knows, after six rounds or fewer if the process that it is
  /// asked about is there. Where that is busy it waits for it, as long as its answer is of use.
  static constexpr Duration kPatience = 150ms;
  /// Over all paths together six rounds without an answer are the answer.
  static constexpr Duration kExamination = 50ms;
  /// In place of a rail: over any path.
  static constexpr int kAnyPath = -1;

  Triangulation(int self, int processes, TriangulationIo& io)
      : self_(self), processes_(processes), io_(io) {}

  /// The path to `peer` over `rail` was given up. Asking again while it is under way does nothing.
  void begin(int peer, int rail, TimePoint now);
  /// `peer` answers this process over no path at all: does it answer others?
  void seek(int peer, TimePoint now) { begin(peer, kAnyPath, now); }
  /// `asker` wants to know whether `about` answers this process over `rail`.
  void asked(int asker, int about, int rail, TimePoint now);
  /// `witness` answers.
  void answered(int witness, int about, int rail, Reach reach);
  /// To be called after datagrams have come, and from time to time.
  void onTick(TimePoint now);

 private:
  struct Case {
    int peer;
    int rail;
    TimePoint deadline;
    std::vector<Sight> sights;
    std::vector<std::uint32_t> marks;  // of the examination of each witness
  };
  struct Duty {
    int asker;
    int about;
    int rail;
    std::uint32_t mark;
    TimePoint deadline;
  };

  bool decided(Case& open, TimePoint now);

  int self_;
  int processes_;
  TriangulationIo& io_;
  std::vector<Case> cases_;
  std::vector<Duty> duties_;
};

}  // namespace faultline::fabric
