#include "injector/rdma/dcb_messages.h"

#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace faultline::rdma {
namespace {

using netlink::Attributes;
using netlink::Message;

constexpr BitsPerSecond kBitsPerUnit = 1000;  // the kernel's unit is the kbit/s
constexpr BitsPerSecond kSmallStep = 100'000'000;
constexpr BitsPerSecond kLargeStep = 1'000'000'000;
constexpr BitsPerSecond kMostSteps = 255;  // 8 bits

static_assert(kTrafficClasses == IEEE_8021QAZ_MAX_TCS);
static_assert(sizeof(ieee_maxrate) == sizeof(Maxrates));

Message dcbRequest(int type, std::uint8_t command, std::string_view netdev) {
  dcbmsg header{};
  header.dcb_family = AF_UNSPEC;
  header.cmd = command;
  Message message(type, 0, header);
  message.putString(DCB_ATTR_IFNAME, netdev);
  return message;
}

Result<BitsPerSecond> quantized(BitsPerSecond rate) {
  if (rate < kSmallStep || rate > kMostSteps * kLargeStep) {
    return errorf(Code::kInvalidArgument,
                  "rdma_throttle: adapters limit a traffic class to 100 Mbit/s at least and 255 "
                  "Gbit/s at most, not to {}",
                  formatRate(rate));
  }
  const BitsPerSecond step = rate <= kMostSteps * kSmallStep ? kSmallStep : kLargeStep;
  return rate / step * step;
}

}  // namespace

Message askMaxrates(std::string_view netdev) {
  return dcbRequest(RTM_GETDCB, DCB_CMD_IEEE_GET, netdev);
}

Message setMaxrates(std::string_view netdev, const Maxrates& rates) {
  Message message = dcbRequest(RTM_SETDCB, DCB_CMD_IEEE_SET, netdev);
  message.nest(DCB_ATTR_IEEE, [&](Message& nested) {
    nested.put(DCB_ATTR_IEEE_MAXRATE, rates.data(), sizeof rates);
  });
  return message;
}

std::optional<Maxrates> parseMaxrates(const nlmsghdr* answer) {
  const Attributes<DCB_ATTR_MAX> attributes(answer, sizeof(dcbmsg));
  if (attributes[DCB_ATTR_IEEE] == nullptr) return std::nullopt;
  const Attributes<DCB_ATTR_IEEE_MAX> ieee(attributes[DCB_ATTR_IEEE]);
  const nlattr* const found = ieee[DCB_ATTR_IEEE_MAXRATE];
  if (found == nullptr || nla_len(found) < static_cast<int>(sizeof(Maxrates))) return std::nullopt;
  return ieee.value<Maxrates>(DCB_ATTR_IEEE_MAXRATE);
}

int parseSetError(const nlmsghdr* answer) {
  const Attributes<DCB_ATTR_MAX> attributes(answer, sizeof(dcbmsg));
  // A negative error number in a byte.
  return -static_cast<int>(static_cast<std::int8_t>(attributes.value<std::uint8_t>(DCB_ATTR_IEEE)));
}

std::optional<std::size_t> trafficClassOf(std::string_view text) {
  std::size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

Result<Maxrates> planMaxrates(const Maxrates& before, const ParameterValue& rate,
                              std::optional<std::size_t> traffic_class, BitsPerSecond link_rate) {
  BitsPerSecond wanted = 0;
  if (const auto* const percent = std::get_if<Percent>(&rate)) {
    if (link_rate <= 0) {
      return errorf(Code::kInvalidArgument,
                    "rdma_throttle: the rate of the link is not known, so {} of it is not either; "
                    "give a rate, like 10Gbit",
                    formatParameter(rate));
    }
    wanted = static_cast<BitsPerSecond>(static_cast<double>(link_rate) * percent->value /
                                        kWholeInPercent);
  } else {
    wanted = std::get<Rate>(rate).bitsPerSecond;
  }
  if (link_rate > 0 && wanted >= link_rate) {
    return errorf(Code::kInvalidArgument,
                  "rdma_throttle: {} is not slower than the link, which has {}",
                  formatParameter(rate), formatRate(link_rate));
  }
  ASSIGN_OR_RETURN(const BitsPerSecond limit, quantized(wanted));
  const auto units = static_cast<std::uint64_t>(limit / kBitsPerUnit);
  Maxrates after = before;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (traffic_class && *traffic_class != i) continue;
    if (before[i] != 0 && before[i] <= units) {
      return errorf(Code::kInvalidArgument,
                    "rdma_throttle: traffic class {} has a limit of {} already, which {} would not "
                    "make slower",
                    i, formatRate(static_cast<BitsPerSecond>(before[i]) * kBitsPerUnit),
                    formatRate(limit));
    }
    after[i] = units;
  }
  return after;
}

std::string formatMaxrates(const Maxrates& rates) {
  const auto one = [](std::uint64_t rate) {
    return rate == 0 ? std::string("none")
                     : formatRate(static_cast<BitsPerSecond>(rate) * kBitsPerUnit);
  };
  if (std::ranges::all_of(rates, [&](std::uint64_t rate) { return rate == rates.front(); })) {
    return "all classes: " + one(rates.front());
  }
  std::string text;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", i, one(rates[i]));
  }
  return text;
}

}  // namespace faultline::rdma
