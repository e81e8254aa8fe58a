#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "injector/netlink/configuration_entry.h"
#include "injector/netlink/repair.h"
#include "injector/netlink/route_legs.h"

namespace faultline::netlink {

/// The routes that are there now, to be asked for those that were noted before. Pure.
class PresentRoutes {
 public:
  /// `noted`: all that was, in its order, as each route that is there can be one of them only;
  /// none: each is asked for alone. Entries of other kinds do not count.
  PresentRoutes(const std::vector<ConfigurationEntry>& present, int ifindex,
                const std::vector<ConfigurationEntry>& noted);

  /// Whether it is there, at least those of its legs that are the interface's.
  bool has(const ConfigurationEntry& noted) const;

  /// Whether it is there and has to be removed and added anew, so that those to its destination
  /// stand in their noted order. Where others stand does not count.
  bool isMisplaced(const ConfigurationEntry& noted) const;

  /// How to put back what is missing or misplaced. Legs that are left, or have been added, are
  /// kept. A route that stood before all of others goes before all that are there now; any other
  /// one goes behind them.
  Repair repair(const ConfigurationEntry& noted) const;

 private:
  struct Route {
    ConfigurationEntry entry;
    RouteParts parts;
  };
  /// Which of the routes one is.
  struct Match {
    int route = -1;      ///< -1: it is gone
    bool whole = false;  ///< all legs of the interface are there
  };
  using Matches = std::unordered_map<std::string, Match>;  // by the request
  Matches match(const std::vector<ConfigurationEntry>& noted) const;
  Match matchOf(const ConfigurationEntry& noted) const;
  void findMisplaced(const std::vector<ConfigurationEntry>& noted);
  /// The requests that remove this one, behind noted ones that the kernel would take for it; none:
  /// it could take one that was not noted.
  std::vector<std::string> removalsOf(int route) const;
  /// Those that remove what is to go before this one later, and could not be told from it then.
  std::vector<std::string> inTheWayOf(const ConfigurationEntry& noted) const;

  int ifindex_;
  bool alone_;                                                    // each is asked for so
  std::vector<Route> routes_;                                     // in the kernel's order
  std::unordered_map<std::string, std::vector<int>> with_frame_;  // routes
  std::unordered_map<std::string, std::vector<int>> to_;          // routes, by their destination
  std::unordered_map<std::string, std::vector<ConfigurationEntry>>
      noted_to_;  // by their destination
  Matches matches_;
  std::unordered_set<int> matched_;            // routes
  std::unordered_set<std::string> misplaced_;  // requests
};

/// Puts routes that go before all others from the last to the first: the order in which they are to
/// be put back.
void orderForRepair(std::vector<ConfigurationEntry>& entries);

/// Whether the order matters in which some of these are put back: of IPv4 routes to one destination
/// the kernel uses the first.
bool orderMatters(const std::vector<ConfigurationEntry>& entries);

}  // namespace faultline::netlink
