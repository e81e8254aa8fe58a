#include "resilient_ccl/fabric/port_watch.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

#include <cerrno>
#include <utility>

namespace faultline::fabric {

class PortWatch::Impl {
 public:
  explicit Impl(Events events) : events_(std::move(events)), socket_(nl_socket_alloc()) {}
  ~Impl() { nl_socket_free(socket_); }

  Status open() {
    if (socket_ == nullptr) return errorf(Code::kInternal, "no memory for a netlink socket");
    nl_socket_disable_seq_check(socket_);
    nl_socket_modify_cb(socket_, NL_CB_VALID, NL_CB_CUSTOM, &Impl::onMessage, this);
    nl_socket_modify_cb(socket_, NL_CB_FINISH, NL_CB_CUSTOM, &Impl::onListed, this);
    errno = 0;
    if (const int error = nl_connect(socket_, NETLINK_ROUTE); error < 0) {
      // libnl has no word for it.
      if (errno == EMFILE || errno == ENFILE) {
        return Status::fromErrno(errno, "connect over netlink");
      }
      return failure("connect", error);
    }
    // Best effort: with the usual 32 KiB some dozen links that come and go are too many.
    (void)nl_socket_set_buffer_size(socket_, kReceiveBuffer, 0);
    if (const int error = nl_socket_add_membership(socket_, RTNLGRP_LINK); error < 0) {
      return failure("subscribe to link events", error);
    }
    if (const int error = nl_socket_add_membership(socket_, RTNLGRP_IPV4_IFADDR); error < 0) {
      return failure("subscribe to address events", error);
    }
    nl_socket_set_nonblocking(socket_);
    return okStatus();
  }

  int fd() const { return nl_socket_get_fd(socket_); }

  Status poll() {
    for (;;) {
      const int error = nl_recvmsgs_default(socket_);
      if (error == -NLE_AGAIN) return okStatus();
      // The kernel dropped events, or ports changed while it listed them.
      if (error == -NLE_NOMEM || error == -NLE_DUMP_INTR) return reportAll();
      if (error < 0) return failure("read link events", error);
    }
  }

  Status reportAll() {
    if (listing_ != Listing::kNone) {
      again_ = true;
      return okStatus();
    }
    return list(Listing::kLinks, RTM_GETLINK);
  }

 private:
  static constexpr int kReceiveBuffer = 256 << 10;

  /// The kernel lists one kind of thing at a time.
  enum class Listing : std::uint8_t { kNone, kLinks, kAddresses };

  Status list(Listing listing, int type) {
    addresses_.clear();
    if (listing == Listing::kLinks) ports_.clear();
    rtgenmsg request{.rtgen_family = listing == Listing::kLinks ? std::uint8_t{AF_UNSPEC}
                                                                : std::uint8_t{AF_INET}};
    const int error = nl_send_simple(socket_, type, NLM_F_DUMP, &request, sizeof(request));
    if (error < 0) return failure("ask for the state of the ports", error);
    listing_ = listing;
    return okStatus();
  }

  static int onListed(nl_msg*, void* self) {
    static_cast<Impl*>(self)->listed();
    return NL_OK;
  }

  void listed() {
    const Listing done = std::exchange(listing_, Listing::kNone);
    if (done == Listing::kLinks) {
      events_.ports(ports_);
      (void)list(Listing::kAddresses, RTM_GETADDR);
    }
    if (done != Listing::kAddresses) return;
    events_.addresses(addresses_);
    if (std::exchange(again_, false)) (void)reportAll();
  }

  void address(int interface, std::uint32_t address, bool present) {
    const std::pair<int, std::uint32_t> entry(interface, address);
    std::erase(addresses_, entry);
    if (present) addresses_.push_back(entry);
  }

  static Status failure(std::string_view attempt, int error) {
    return errorf(Code::kIo, "{} over netlink: {}", attempt, nl_geterror(error));
  }

  static int onMessage(nl_msg* message, void* self) {
    nlmsghdr* header = nlmsg_hdr(message);
    auto& watch = *static_cast<Impl*>(self);
    const Events& events = watch.events_;
    if (header->nlmsg_type == RTM_NEWADDR || header->nlmsg_type == RTM_DELADDR) {
      const auto* address = static_cast<const ifaddrmsg*>(nlmsg_data(header));
      nlattr* local = nlmsg_find_attr(header, sizeof(ifaddrmsg), IFA_LOCAL);
      if (address->ifa_family != AF_INET || local == nullptr) return NL_OK;
      const int interface = static_cast<int>(address->ifa_index);
      const std::uint32_t value = ntohl(nla_get_u32(local));
      const bool present = header->nlmsg_type == RTM_NEWADDR;
      // What happens while they are listed belongs to the list, too.
      watch.address(interface, value, present);
      const bool ofList = (header->nlmsg_flags & NLM_F_MULTI) != 0;
      if (!ofList) events.address(interface, value, present);
      return NL_OK;
    }
    if (header->nlmsg_type != RTM_NEWLINK && header->nlmsg_type != RTM_DELLINK) return NL_OK;
    const auto* link = static_cast<const ifinfomsg*>(nlmsg_data(header));
    if (link->ifi_family != AF_UNSPEC) return NL_OK;  // a bridge's word about its port
    constexpr unsigned kUsable = IFF_UP | IFF_RUNNING | IFF_LOWER_UP;
    Port port{.index = link->ifi_index, .name = {}, .mac = {}};
    port.present = header->nlmsg_type == RTM_NEWLINK;
    port.usable = port.present && (link->ifi_flags & kUsable) == kUsable;
    if (nlattr* const name = nlmsg_find_attr(header, sizeof(ifinfomsg), IFLA_IFNAME)) {
      port.name = nla_get_string(name);
    }
    if (nlattr* const mac = nlmsg_find_attr(header, sizeof(ifinfomsg), IFLA_ADDRESS)) {
      port.mac.assign(static_cast<const char*>(nla_data(mac)),
                      static_cast<std::size_t>(nla_len(mac)));
    }
    if (port.present) {
      watch.ports_.insert(port.index);
    } else {
      watch.ports_.erase(port.index);
    }
    events.port(port);
    return NL_OK;
  }

  Events events_;
  nl_sock* socket_;
  Listing listing_ = Listing::kNone;
  bool again_ = false;
  std::set<int> ports_;  // of the list that was read last, and what has come and gone since
  Addresses addresses_;  // of the list that is being read, and what has happened since it began
};

PortWatch::PortWatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PortWatch::~PortWatch() = default;

Result<std::unique_ptr<PortWatch>> PortWatch::open(Events events) {
  auto impl = std::make_unique<Impl>(std::move(events));
  RETURN_IF_ERROR(impl->open());
  return std::unique_ptr<PortWatch>(new PortWatch(std::move(impl)));
}

int PortWatch::fd() const { return impl_->fd(); }
Status PortWatch::poll() { return impl_->poll(); }
Status PortWatch::reportAll() { return impl_->reportAll(); }

}  // namespace faultline::fabric
