#include "injector/netlink/message.h"

#include <gtest/gtest.h>
#include <netlink/msg.h>

#include <string>
#include <string_view>

namespace faultline::netlink {
namespace {

// As the request for an RDMA device of a guest, which has no header of a family.
TEST(MessageTest, AttributesHaveRoomBehindAPayloadOfAnyLength) {
  constexpr int kType = 20, kAttribute = 1;
  const std::string value(200, 'x');
  for (const std::size_t size : {0, 8, 100'000}) {
    const std::string payload(size, 'p');
    Message message(kType, 0, std::string_view(payload));
    for (int i = 0; i < 3; ++i) message.putString(kAttribute, value);
    const nlmsghdr* const header = nlmsg_hdr(message.get());
    EXPECT_EQ(nlmsg_datalen(header), static_cast<int>(size + 3 * nla_total_size(value.size() + 1)));
  }
}

}  // namespace
}  // namespace faultline::netlink
