#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "injector/netlink/socket.h"
#include "injector/safety/entry.h"
#include "injector/safety/journal.h"

/// What undoes strikes from outside of who holds them.
namespace faultline::strike {

/// Around the time that a strike is to last: looking, evidence, putting back. The commands of the
/// policy come on top.
inline constexpr Duration kAroundStrike = std::chrono::seconds(30);

/// Whether something of the first entry that this is true of is in effect now.
bool stillLasts(const safety::Journal& journal,
                const std::function<bool(const safety::Entry&)>& which);

/// Undoes an entry whose holder is gone, or closes one of another boot. To be called with the
/// journal's lock. kNotRestored when something is left.
Status undoLeft(netlink::Socket& socket, safety::Journal& journal, const safety::Entry& entry);

/// What became of an entry.
struct Became {
  safety::Entry entry;
  std::string_view word;  ///< "restored", "closed", "held", "left"
  std::string note;
};

/// Undoes an entry that nobody holds. One that is held is left to its holder, unless that hangs
/// or with `force`: then its holder is ended first. Takes the journal's lock, for which it waits
/// `patience`, once there is no holder: nobody waits for that one.
Became restoreOne(netlink::Socket& socket, safety::Journal& journal, const safety::Entry& entry,
                  bool force, Duration patience);

}  // namespace faultline::strike
