#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "resilient_ccl/fabric/nic_address.h"

namespace faultline::fabric {

/// A network interface of this process's namespace, as rtnetlink tells of it.
struct Port {
  int index = 0;
  std::string name;
  std::string mac;      ///< bytes of the link-layer address; empty: none
  bool usable = false;  ///< administratively up and with carrier
  bool present = true;  ///< false: the interface is gone
};

/// Which interface each rail lives on. An interface may go and come back as a new one: a driver is
/// reloaded, a PCIe error is recovered from, a device is renamed or moves between namespaces. A
/// rail whose interface is gone is taken back on the one that gets its address; else on the one
/// that has its old name or its MAC address (of InfiniBand: the port's GUID in it), as soon as that
/// has an address. An address that moves to an interface of no rail takes its rail along. Pure: no
/// socket.
class NicHomes {
 public:
  struct Change {
    enum class Kind : std::uint8_t {
      kPort,     ///< the interface is usable now, or is not
      kGone,     ///< there is no interface for the rail
      kMoved,    ///< another one is; `usable` is its state
      kRenamed,  ///< the same one has another name
      kAddress,  ///< the rail has another address
    };
    std::size_t rail = 0;
    Kind kind{};
    bool usable = false;

    friend bool operator==(const Change&, const Change&) = default;
  };
  using Changes = std::vector<Change>;
  /// Interfaces and IPv4 addresses that they have, in host byte order.
  using Addresses = std::vector<std::pair<int, std::uint32_t>>;

  /// The next rail. `device` empty: it has no interface, and never changes. `index` 0: the
  /// interface is not there now.
  void add(const std::string& device, std::uint32_t address, int index);

  /// An event of an interface, or its entry in a list.
  Changes port(const Port& port);
  /// All interfaces that there are, by their indices, at the end of their list.
  Changes ports(const std::set<int>& indices);
  /// An interface has got (`present`) or lost an address.
  Changes address(int index, std::uint32_t address, bool present);
  /// All addresses that there are now, the latest of an interface last.
  Changes addresses(const Addresses& all);

  std::size_t size() const { return rails_.size(); }
  const std::string& device(std::size_t rail) const { return rails_[rail].device; }
  int index(std::size_t rail) const { return rails_[rail].index; }
  std::uint32_t address(std::size_t rail) const { return rails_[rail].address; }
  /// How often the rail has had another address.
  std::uint32_t addressChanges(std::size_t rail) const { return rails_[rail].follows.changes(); }

 private:
  struct Rail {
    std::string device;
    std::string mac;
    std::uint32_t address;
    int index;
    bool fixed;  // no interface
    NicAddress follows;
  };
  struct Known {
    Port port;
    std::vector<std::uint32_t> addresses;
  };

  bool isHome(int index) const;
  /// Of the rail's interface, as far as it has been told.
  void rehouse(Changes& changes);
  int candidate(const Rail& rail) const;
  void moveTo(std::size_t rail, int index, Changes& changes);

  std::vector<Rail> rails_;
  std::map<int, Known> known_;
  bool listed_ = false;  // all addresses are known
};

}  // namespace faultline::fabric
