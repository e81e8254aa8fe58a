#include "injector/safety/neighbours.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <poll.h>

#include <algorithm>
#include <array>

#include "injector/netlink/message.h"

namespace faultline::safety {
namespace {

constexpr std::size_t kMost = 8;
constexpr int kNextLookMs = 5;
constexpr int kAskAgainLooks = 10;

Result<std::vector<std::uint32_t>> knownBehind(netlink::Socket& socket, int ifindex) {
  ndmsg header{};
  header.ndm_family = AF_INET;
  header.ndm_ifindex = ifindex;
  netlink::Message message(RTM_GETNEIGH, 0, header);
  std::vector<std::uint32_t> known;
  RETURN_IF_ERROR(socket.dump(
      message, "list neighbours",
      [&](const nlmsghdr* answer) {
        const auto* const found = static_cast<const ndmsg*>(nlmsg_data(answer));
        constexpr int kNobody = NUD_INCOMPLETE | NUD_FAILED | NUD_NOARP;
        if (found->ndm_ifindex != ifindex || (found->ndm_state & kNobody) != 0) return;
        const netlink::Attributes<NDA_MAX> attributes(answer, sizeof(ndmsg));
        if (const auto address = attributes.value<std::uint32_t>(NDA_DST); address != 0) {
          known.push_back(address);
        }
      },
      [&] { known.clear(); }));
  return known;
}

std::string textOf(std::uint32_t address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address, text.data(), text.size());
  return text.data();
}

/// Those of `addresses` that answer; ends early when all do.
std::set<std::uint32_t> answering(const netlink::ArpProbe& probe,
                                  const std::vector<std::uint32_t>& addresses, Duration patience) {
  std::set<std::uint32_t> answered;
  const TimePoint deadline = now() + patience;
  for (int look = 0; answered.size() < addresses.size() && now() < deadline; ++look) {
    for (const std::uint32_t address : addresses) {
      if (look % kAskAgainLooks == 0 && !answered.contains(address)) (void)probe.ask(address);
    }
    ::poll(nullptr, 0, kNextLookMs);
    const auto answers = probe.answers();
    if (!answers.ok()) continue;  // as after the interface was down
    for (const netlink::ArpAnswer& answer : *answers) {
      if (std::ranges::count(addresses, answer.address) > 0) answered.insert(answer.address);
    }
  }
  return answered;
}

}  // namespace

Result<Neighbours> Neighbours::find(netlink::Socket& socket, int ifindex, Duration patience) {
  Neighbours neighbours;
  ASSIGN_OR_RETURN(const std::vector<std::uint32_t> known, knownBehind(socket, ifindex));
  auto probe = netlink::ArpProbe::open(socket, ifindex);
  if (probe.status().code() == Code::kPermissionDenied || known.empty()) return neighbours;
  if (!probe.ok()) return probe.status();
  const auto answered = answering(*probe, known, patience);
  for (const std::uint32_t address : answered) {
    if (neighbours.addresses_.size() < kMost) neighbours.addresses_.push_back(address);
  }
  neighbours.probe_.emplace(*std::move(probe));
  return neighbours;
}

void Neighbours::ask() {
  answered_.clear();
  sent_ = false;
  if (!probe_) return;
  (void)probe_->answers();  // those to earlier questions
  for (const std::uint32_t address : addresses_) sent_ = probe_->ask(address).ok() || sent_;
}

std::size_t Neighbours::answered() {
  if (!probe_) return 0;
  const auto answers = probe_->answers();
  if (!answers.ok()) return answered_.size();
  for (const netlink::ArpAnswer& answer : *answers) {
    if (std::ranges::count(addresses_, answer.address) > 0) answered_.insert(answer.address);
  }
  return answered_.size();
}

Result<std::string> Neighbours::silent(netlink::Socket& socket, int ifindex,
                                       Duration patience) const {
  if (addresses_.empty()) return std::string();
  ASSIGN_OR_RETURN(const netlink::ArpProbe probe, netlink::ArpProbe::open(socket, ifindex));
  const auto answered = answering(probe, addresses_, patience);
  std::string missing;
  for (const std::uint32_t address : addresses_) {
    if (!answered.contains(address)) missing += (missing.empty() ? "" : ", ") + textOf(address);
  }
  return missing.empty() ? missing
                         : missing + (missing.find(',') == std::string::npos
                                          ? " answered before and does not now"
                                          : " answered before and do not now");
}

}  // namespace faultline::safety
