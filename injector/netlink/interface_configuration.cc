#include "injector/netlink/interface_configuration.h"

#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include <algorithm>

namespace faultline::netlink {

Status checkFields(const InterfaceConfiguration& configuration) {
  for (std::size_t i = 0; i < configuration.entries_.size(); ++i) {
    RETURN_IF_ERROR(checkEntry(configuration.entries_[i], configuration.ifindex_)
                        .withContext(fmt::format("entries[{}]", i)));
  }
  return okStatus();
}

Result<InterfaceConfiguration> InterfaceConfiguration::fromJson(const Json& json) {
  InterfaceConfiguration configuration;
  RETURN_IF_ERROR(JsonReader<Json>::read(json, "", configuration));
  return configuration;
}

InterfaceConfiguration::Json InterfaceConfiguration::toJson() const {
  return JsonWriter<Json>::write(*this);
}

void InterfaceConfiguration::rebind(int ifindex) {
  for (ConfigurationEntry& entry : entries_) rebindEntry(entry, ifindex_, ifindex);
  ifindex_ = ifindex;
}

Result<InterfaceConfiguration> InterfaceConfiguration::read(Socket& socket, int ifindex) {
  InterfaceConfiguration configuration;
  configuration.ifindex_ = ifindex;
  configuration.noted_at_ = now();
  Belongings of{ifindex, {}};
  const auto add = [&](const nlmsghdr* message) {
    if (auto entry = entryOf(message, of)) configuration.entries_.push_back(*std::move(entry));
  };
  const auto forget = [&](EntryKind kind) {
    return [&configuration, kind] {
      std::erase_if(configuration.entries_,
                    [&](const ConfigurationEntry& entry) { return entry.kind == kind; });
    };
  };
  Message addresses(RTM_GETADDR, 0, ifaddrmsg{});
  RETURN_IF_ERROR(socket.dump(addresses, "list addresses", add, forget(EntryKind::kAddress)));
  Message routes(RTM_GETROUTE, 0, rtmsg{});
  RETURN_IF_ERROR(socket.dump(routes, "list routes", add, forget(EntryKind::kRoute)));
  // Routes without a gateway before those whose gateway they lead to (narrower scope first).
  const auto rank = [](const ConfigurationEntry& entry) {
    constexpr int kFirst = -256;
    if (entry.kind != EntryKind::kRoute) return kFirst;
    return -static_cast<int>(reinterpret_cast<const rtmsg*>(entry.request.bytes.data())->rtm_scope);
  };
  std::stable_sort(configuration.entries_.begin(), configuration.entries_.end(),
                   [&](const ConfigurationEntry& left, const ConfigurationEntry& right) {
                     return rank(left) < rank(right);
                   });
  return configuration;
}

Result<std::vector<ConfigurationEntry>> InterfaceConfiguration::missingEntries(
    Socket& socket) const {
  ASSIGN_OR_RETURN(const InterfaceConfiguration present, read(socket, ifindex_));
  std::vector<ConfigurationEntry> missing;
  for (const ConfigurationEntry& entry : entries_) {
    if (std::find(present.entries_.begin(), present.entries_.end(), entry) ==
        present.entries_.end()) {
      missing.push_back(entry);
    }
  }
  return missing;
}

Status InterfaceConfiguration::restore(Socket& socket) const {
  ASSIGN_OR_RETURN(const std::vector<ConfigurationEntry> lost, missingEntries(socket));
  Status first_error;
  for (const ConfigurationEntry& entry : lost) {
    const Status status = socket.request(
        Message(messageType(entry.kind), kCreateNew, std::string_view(entry.request.bytes)),
        fmt::format("restore an {} of interface {}", enumName(entry.kind), ifindex_));
    // The rest is restored all the same: one lost route must not cost the others.
    if (!status.ok() && status.code() != Code::kAlreadyExists && first_error.ok()) {
      first_error = status;
    }
  }
  return first_error;
}

Result<int> InterfaceConfiguration::missing(Socket& socket) const {
  ASSIGN_OR_RETURN(const std::vector<ConfigurationEntry> lost, missingEntries(socket));
  return static_cast<int>(lost.size());
}

}  // namespace faultline::netlink
