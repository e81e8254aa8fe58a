#include "tests/fuzz/messages/messages_entry.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "wire/agent.h"
#include "wire/guest.h"
#include "wire/rank.h"
#include "wire/service.h"

namespace faultline::fuzz {
namespace {

using nlohmann::json;

void mustBe(bool kept, const std::string& what) {
  if (kept) return;
  std::fprintf(stderr, "promise broken: %s\n", what.c_str());
  std::abort();
}

template <typename Protocol>
int takes(const json& bytes) {
  const auto message = wire::fromJson<Protocol>(bytes);
  if (!message.ok()) {
    mustBe(!message.status().message().empty(), "refused without a word");
    return 0;
  }
  const json written = wire::toJson(*message);
  const auto again = wire::fromJson<Protocol>(written);
  mustBe(again.ok(), again.status().message());
  mustBe(wire::toJson(*again) == written, written.dump());
  return 1;
}

}  // namespace

int messageReader(const std::uint8_t* data, std::size_t size) {
  const auto parsed = parseJson<json>(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed.ok()) return 0;
  mustBe(!wire::checkVersion(*parsed).ok() || (*parsed)["version"] == wire::kVersion, "version");
  return takes<wire::ToRank>(*parsed) + takes<wire::FromRank>(*parsed) +
         takes<wire::ToGuard>(*parsed) + takes<wire::FromGuard>(*parsed) +
         takes<wire::ToAgent>(*parsed) + takes<wire::FromAgent>(*parsed) +
         takes<wire::ToGuest>(*parsed) + takes<wire::FromGuest>(*parsed) +
         takes<wire::ToHolder>(*parsed) + takes<wire::FromHolder>(*parsed) +
         takes<wire::ToService>(*parsed) + takes<wire::FromService>(*parsed) +
         takes<wire::ToRoom>(*parsed) + takes<wire::FromRoom>(*parsed);
}

}  // namespace faultline::fuzz
