#include "injector/netlink/present_routes.h"

#include <sys/socket.h>

#include <algorithm>
#include <set>
#include <utility>

#include "injector/netlink/message.h"

namespace faultline::netlink {
namespace {

using Legs = std::vector<RouteLeg>;

const RouteLeg* find(const Legs& legs, const RouteLeg& wanted) {
  const auto found = std::find_if(legs.begin(), legs.end(),
                                  [&](const RouteLeg& leg) { return leg.samePath(wanted); });
  return found == legs.end() ? nullptr : &*found;
}

bool containsAll(const Legs& legs, const Legs& wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const RouteLeg& leg) { return find(legs, leg) != nullptr; });
}

bool containsAny(const Legs& legs, const Legs& wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const RouteLeg& leg) { return find(legs, leg) != nullptr; });
}

/// Whether it has a place among others that can be chosen: IPv6 puts what is added behind them.
bool hasPlace(const ConfigurationEntry& entry) {
  return entry.kind == EntryKind::kRoute && entry.place != RoutePlace::kAlone &&
         familyOf(entry) == AF_INET;
}

bool goesBefore(const ConfigurationEntry& entry) {
  return hasPlace(entry) && entry.place == RoutePlace::kBefore;
}

int flagsFor(RoutePlace place) {
  if (place == RoutePlace::kAlone) return kCreateNew;
  return place == RoutePlace::kBefore ? NLM_F_CREATE : NLM_F_CREATE | NLM_F_APPEND;
}

/// Those of `noted` and of what has been added since.
Legs merged(const Legs& noted, const Legs& own, const Legs& present) {
  Legs all;
  for (const RouteLeg& leg : noted) {
    if (find(own, leg) != nullptr || find(present, leg) != nullptr) all.push_back(leg);
  }
  for (const RouteLeg& leg : present) {
    if (find(noted, leg) == nullptr) all.push_back(leg);
  }
  return all;
}

}  // namespace

PresentRoutes::PresentRoutes(const std::vector<ConfigurationEntry>& present, int ifindex,
                             const std::vector<ConfigurationEntry>& noted)
    : ifindex_(ifindex), alone_(noted.empty()) {
  for (const ConfigurationEntry& entry : present) {
    if (entry.kind != EntryKind::kRoute) continue;
    const int index = static_cast<int>(routes_.size());
    routes_.push_back({entry, partsOf(entry)});
    with_frame_[routes_.back().parts.frame].push_back(index);
    to_[destinationOf(entry)].push_back(index);
  }
  for (const ConfigurationEntry& entry : noted) {
    if (entry.kind == EntryKind::kRoute) noted_to_[destinationOf(entry)].push_back(entry);
  }
  matches_ = match(noted);
  for (const auto& [request, found] : matches_) matched_.insert(found.route);
  findMisplaced(noted);
}

PresentRoutes::Matches PresentRoutes::match(const std::vector<ConfigurationEntry>& noted) const {
  Matches matches;
  std::set<int> taken;
  const auto take = [&](bool whole, const auto& fits) {
    for (const ConfigurationEntry& entry : noted) {
      if (entry.kind != EntryKind::kRoute || matches.contains(entry.request.bytes)) continue;
      const RouteParts parts = partsOf(entry);
      const auto candidates = with_frame_.find(parts.frame);
      if (candidates == with_frame_.end()) continue;
      for (const int route : candidates->second) {
        const Legs& there = routes_[static_cast<std::size_t>(route)].parts.legs;
        if (taken.contains(route) || !fits(parts, there)) continue;
        taken.insert(route);
        matches[entry.request.bytes] = {route, whole};
        break;
      }
    }
  };
  // Who is there as he was first, or another one would be taken for him.
  take(true, [](const RouteParts& parts, const Legs& there) {
    return containsAll(there, parts.legs) && containsAll(parts.legs, there);
  });
  take(true, [&](const RouteParts& parts, const Legs& there) {
    return containsAll(there, parts.legsOf(ifindex_));
  });
  take(false,
       [](const RouteParts& parts, const Legs& there) { return containsAny(parts.legs, there); });
  return matches;
}

PresentRoutes::Match PresentRoutes::matchOf(const ConfigurationEntry& noted) const {
  const Matches asked = alone_ ? match({noted}) : Matches();
  const Matches& matches = alone_ ? asked : matches_;
  const auto found = matches.find(noted.request.bytes);
  return found == matches.end() ? Match{} : found->second;
}

void PresentRoutes::findMisplaced(const std::vector<ConfigurationEntry>& noted) {
  // What is added goes to one of the ends: one that is to move takes along those between.
  struct Moving {
    int last;
    bool all = false;
  };
  std::unordered_map<std::string, Moving> moving;
  const auto look = [&](const ConfigurationEntry& entry, const auto& isInOrder, int start) {
    const auto found = matches_.find(entry.request.bytes);
    if (found == matches_.end() || !found->second.whole) return;
    Moving& those = moving.try_emplace(destinationOf(entry), Moving{start}).first->second;
    those.all = those.all || !isInOrder(found->second.route, those.last);
    those.last = found->second.route;
    if (those.all) misplaced_.insert(entry.request.bytes);
  };
  for (auto entry = noted.rbegin(); entry != noted.rend(); ++entry) {
    if (goesBefore(*entry)) look(*entry, std::less<>(), static_cast<int>(routes_.size()));
  }
  moving.clear();
  for (const ConfigurationEntry& entry : noted) {
    if (hasPlace(entry) && !goesBefore(entry)) look(entry, std::greater<>(), -1);
  }
}

bool PresentRoutes::has(const ConfigurationEntry& noted) const { return matchOf(noted).whole; }

bool PresentRoutes::isMisplaced(const ConfigurationEntry& noted) const {
  return misplaced_.contains(noted.request.bytes);
}

std::vector<std::string> PresentRoutes::removalsOf(int route) const {
  const ConfigurationEntry& entry = routes_[static_cast<std::size_t>(route)].entry;
  const Legs& legs = routes_[static_cast<std::size_t>(route)].parts.legs;
  const bool others_are_unknown =
      entry.place == RoutePlace::kBehind && !legs.empty() && legs.front().ifindex != ifindex_;
  if (others_are_unknown) return {};
  std::vector<std::string> removals;
  for (const int other : to_.at(destinationOf(entry))) {
    const Route& one = routes_[static_cast<std::size_t>(other)];
    if (other == route || !hitsFirst(legs, one.parts.legs)) continue;
    if (!matched_.contains(other)) return {};
    removals.push_back(removalOf(one.entry));
  }
  removals.push_back(removalOf(entry));
  return removals;
}

std::vector<std::string> PresentRoutes::inTheWayOf(const ConfigurationEntry& noted) const {
  std::vector<std::string> removals;
  if (!goesBefore(noted)) return removals;
  const Legs legs = partsOf(noted).legs;
  const auto all = noted_to_.find(destinationOf(noted));
  if (all == noted_to_.end()) return removals;
  for (const ConfigurationEntry& before : all->second) {
    if (before == noted) break;
    const Match found = matchOf(before);
    if (found.route < 0) continue;
    const Route& one = routes_[static_cast<std::size_t>(found.route)];
    if (hitsFirst(one.parts.legs, legs)) removals.push_back(removalOf(one.entry));
  }
  return removals;
}

Repair PresentRoutes::repair(const ConfigurationEntry& noted) const {
  const RouteParts parts = partsOf(noted);
  const Legs own = parts.legsOf(ifindex_);
  const Match found = matchOf(noted);
  if (found.route < 0) {
    Repair repair{.attempts = {{noted.request.bytes, flagsFor(noted.place)}},
                  .removals = inTheWayOf(noted)};
    // The interface of another leg may be down, too: whoever puts that one back adds its leg.
    if (own.size() < parts.legs.size()) {
      repair.attempts.push_back({withLegs(noted, own), flagsFor(noted.place)});
    }
    return repair;
  }
  const auto& [present, there] = routes_[static_cast<std::size_t>(found.route)];
  std::string request =
      found.whole ? present.request.bytes : withLegs(noted, merged(parts.legs, own, there.legs));
  if (!hasPlace(present)) return {.attempts = {{std::move(request), kReplace}}};
  const RoutePlace place = noted.place == RoutePlace::kAlone ? present.place : noted.place;
  return {.attempts = {{std::move(request), flagsFor(place)}}, .removals = removalsOf(found.route)};
}

void orderForRepair(std::vector<ConfigurationEntry>& entries) {
  std::vector<ConfigurationEntry> before;
  for (const ConfigurationEntry& entry : entries) {
    if (goesBefore(entry)) before.push_back(entry);
  }
  for (ConfigurationEntry& entry : entries) {
    if (!goesBefore(entry)) continue;
    entry = std::move(before.back());
    before.pop_back();
  }
}

bool orderMatters(const std::vector<ConfigurationEntry>& entries) {
  return std::any_of(entries.begin(), entries.end(), hasPlace);
}

}  // namespace faultline::netlink
