#include "harness/site/hosts/greeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/printable.h"
#include "base/version.h"
#include "wire/greeting.h"
#include "wire/message.h"

namespace faultline::hosts {
namespace {

constexpr std::size_t kMostBefore = 64 << 10;  // more is no banner
constexpr std::size_t kLongestGreeting = 256;  // behind the mark
constexpr std::size_t kLongestExcerpt = 200;

}  // namespace

std::string excerpt(std::string_view said) {
  while (!said.empty() && (said.back() == '\n' || said.back() == '\r')) said.remove_suffix(1);
  const bool cut = said.size() > kLongestExcerpt;
  std::string text(said.substr(0, kLongestExcerpt));
  std::ranges::replace(text, '\n', ' ');
  std::erase(text, '\r');
  return printable(text) + (cut ? " ..." : "");
}

std::optional<Status> readGreeting(std::string_view said, const std::string& host) {
  const std::size_t mark = said.find(wire::kGreetingMark);
  if (mark == std::string_view::npos) {
    if (said.size() <= kMostBefore) return std::nullopt;
    return errorf(Code::kUnavailable, "host {} says '{}' and no agent follows", host,
                  excerpt(said));
  }
  std::string_view line = said.substr(mark + wire::kGreetingMark.size());
  const std::size_t end = line.find('\n');
  if (end == std::string_view::npos && line.size() <= kLongestGreeting) return std::nullopt;
  if (end == std::string_view::npos) {
    return errorf(Code::kUnavailable, "host {} greets with '{}', which does not end", host,
                  excerpt(line));
  }
  if (mark > 0) {
    return errorf(Code::kUnavailable,
                  "host {} says '{}' before the agent: something prints when a program is "
                  "started there (~/.bashrc for ssh, a prolog for Slurm); have it print only for "
                  "terminals",
                  host, excerpt(said.substr(0, mark)));
  }
  const std::string_view behind = line.substr(end + 1);
  line = line.substr(0, end);
  const std::size_t space = line.find(' ');
  int version = 0;
  const char* const last = line.data() + line.size();
  const char* const first = space == std::string_view::npos ? last : line.data() + space + 1;
  const auto [at, error] = std::from_chars(first, last, version);
  if (error != std::errc() || at != last) {
    return errorf(Code::kUnavailable, "host {} greets with '{}', which is no version", host,
                  excerpt(line));
  }
  // Messages of one version may still be followed by other deeds.
  if (version != wire::kAgentVersion || line.substr(0, space) != versionNumber()) {
    return errorf(
        Code::kUnavailable,
        "host {} has faultline {}, whose agents speak version {} of the messages; here is "
        "{} with version {}: install the same one on both, or name its path there by "
        "'program'",
        host, excerpt(line.substr(0, space)), version, versionNumber(), wire::kAgentVersion);
  }
  if (behind.empty()) return okStatus();
  return errorf(Code::kUnavailable, "host {} says '{}' after the agent's greeting", host,
                excerpt(behind));
}

}  // namespace faultline::hosts
