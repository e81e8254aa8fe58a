#include "injector/safety/policy.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

#include "base/executable.h"
#include "base/text.h"
#include "base/units.h"
#include "base/yaml/document.h"
#include "base/yaml/text_check.h"
#include "injector/safety/target.h"

namespace faultline::safety {
namespace {

constexpr std::size_t kLongestName = 15;  // IFNAMSIZ, without its zero
constexpr int kMostAtOnce = 1000;
constexpr std::string_view kHelp = "docs/safety.md";

std::string joined(const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  return join(views, ", ");
}

class Reader {
 public:
  Reader(std::string_view source, std::span<const std::string_view> kinds)
      : source_(source), kinds_(kinds) {}

  Result<Policy> read(std::string_view text) {
    const yaml::Document document =
        yaml::parseDocument(text, 0, {"policy", kHelp, kMostPolicyBytes});
    for (const yaml::Problem& problem : document.problems) refuse(problem.where, problem.message);
    if (mistakes_.empty()) readRoot(document.root);
    if (mistakes_.empty()) return policy_;
    return Status(Code::kInvalidArgument, mistakes_);
  }

 private:
  using Read = std::function<void(const yaml::Node&)>;

  void refuse(const yaml::Location& where, std::string_view message) {
    if (!mistakes_.empty()) mistakes_ += '\n';
    mistakes_ += where.line > 0
                     ? fmt::format("{}:{}:{}: {}", source_, where.line, where.column, message)
                     : fmt::format("{}: {}", source_, message);
  }

  void readMap(const yaml::Node& node, std::string_view what,
               const std::map<std::string_view, Read>& keys) {
    if (node.kind != yaml::Node::Kind::kMap) {
      refuse(node.where,
             fmt::format("{} is a mapping of keys, found {}", what, yaml::describe(node)));
      return;
    }
    std::vector<std::string_view> known;
    for (const auto& [key, read] : keys) known.push_back(key);
    for (const yaml::Entry& entry : node.entries) {
      const auto found = keys.find(entry.key);
      if (found == keys.end()) {
        refuse(entry.where, fmt::format("{} has no key '{}'{}", what, yaml::shortened(entry.key),
                                        suggestion(entry.key, known)));
      } else {
        found->second(entry.value);
      }
    }
  }

  void readRoot(const yaml::Node& root) {
    readMap(
        root, "a policy",
        {{"version", [&](const yaml::Node& node) { readVersion(node); }},
         {"may_strike",
          [&](const yaml::Node& node) {
            readList(node, policy_.mayStrike, [&](const yaml::Node& one) { checkPlace(one); });
          }},
         {"kinds",
          [&](const yaml::Node& node) {
            readList(node, policy_.kinds, [&](const yaml::Node& one) { checkKind(one); });
          }},
         {"longest", [&](const yaml::Node& node) { readLength(node, policy_.longest); }},
         {"at_once", [&](const yaml::Node& node) { readAtOnce(node); }},
         {"before", [&](const yaml::Node& node) { readCommand(node, policy_.before); }},
         {"after", [&](const yaml::Node& node) { readCommand(node, policy_.after); }},
         {"command_limit", [&](const yaml::Node& node) { readLength(node, policy_.commandLimit); }},
         {"keep",
          [&](const yaml::Node& node) {
            readList(node, policy_.keep, [&](const yaml::Node& one) { checkAddress(one); });
          }},
         {"users",
          [&](const yaml::Node& node) {
            readList(node, policy_.users, [&](const yaml::Node& one) { checkName(one, "user"); });
          }},
         {"groups", [&](const yaml::Node& node) {
            readList(node, policy_.groups, [&](const yaml::Node& one) { checkName(one, "group"); });
          }}});
    if (root.kind != yaml::Node::Kind::kMap) return;
    for (const std::string_view key : {"version", "may_strike", "kinds", "longest"}) {
      if (root.find(key) == nullptr) refuse(root.where, fmt::format("a policy needs '{}'", key));
    }
    // What nobody takes back must not be announced.
    if (policy_.before.empty() != policy_.after.empty() && mistakes_.empty()) {
      refuse(root.where, "'before' and 'after' belong together: one of them is missing");
    }
  }

  void readVersion(const yaml::Node& node) {
    if (node.text != "1") {
      refuse(node.where, fmt::format("version: expected 1, found {}", yaml::describe(node)));
    }
  }

  void readList(const yaml::Node& node, std::vector<std::string>& values, const Read& check) {
    if (node.kind != yaml::Node::Kind::kList || node.items.empty()) {
      refuse(node.where, fmt::format("expected a list, like [eth1], found {}",
                                     node.kind == yaml::Node::Kind::kList ? "an empty one"
                                                                          : yaml::describe(node)));
      return;
    }
    for (const yaml::Node& item : node.items) {
      if (item.kind != yaml::Node::Kind::kScalar || item.text.empty()) {
        refuse(item.where, fmt::format("expected a word, found {}", yaml::describe(item)));
        continue;
      }
      check(item);
      if (std::ranges::find(values, item.text) != values.end()) {
        refuse(item.where, fmt::format("'{}' is there twice", yaml::shortened(item.text)));
      }
      values.push_back(item.text);
    }
  }

  void checkPlace(const yaml::Node& one) {
    if (isPciAddress(one.text)) return;
    const bool strange =
        one.text.find_first_of(" /*?\t:") != std::string::npos || one.text.size() > kLongestName;
    if (!strange) return;
    refuse(one.where, fmt::format("'{}' is neither the name of an interface, like eth1, nor a PCI "
                                  "address, like 0000:17:00.0; patterns are not possible",
                                  yaml::shortened(one.text)));
  }

  void checkKind(const yaml::Node& one) {
    if (std::ranges::find(kinds_, one.text) != kinds_.end()) return;
    refuse(one.where, fmt::format("a host has no fault '{}'{}", yaml::shortened(one.text),
                                  suggestion(one.text, kinds_)));
  }

  void checkAddress(const yaml::Node& one) {
    if (isAddress(one.text)) return;
    refuse(one.where,
           fmt::format("'{}' is no address, like 10.0.0.1 or fe80::1%eth0: names are not looked up",
                       yaml::shortened(one.text)));
  }

  void checkName(const yaml::Node& one, std::string_view what) {
    if (one.text.find_first_of(" *?:\t,") == std::string::npos) return;
    refuse(one.where, fmt::format("'{}' is no name of a {}; patterns are not possible",
                                  yaml::shortened(one.text), what));
  }

  void readLength(const yaml::Node& node, Duration& length) {
    const auto read = parseDuration(node.text);
    if (node.kind != yaml::Node::Kind::kScalar || !read.ok()) {
      refuse(node.where,
             fmt::format("expected a duration, like 30s, found {}", yaml::describe(node)));
    } else if (*read <= Duration(0)) {
      refuse(node.where, "it must be longer than nothing");
    } else {
      length = *read;
    }
  }

  void readCount(const yaml::Node& node, int& count) {
    const char* const end = node.text.data() + node.text.size();
    int read = 0;
    const auto [stop, error] = std::from_chars(node.text.data(), end, read);
    if (node.kind == yaml::Node::Kind::kScalar && error == std::errc() && stop == end &&
        read >= 1 && read <= kMostAtOnce) {
      count = read;
      return;
    }
    refuse(node.where, fmt::format("expected a number from 1 to {}, found {}", kMostAtOnce,
                                   yaml::describe(node)));
  }

  void readAtOnce(const yaml::Node& node) {
    readMap(node, "at_once",
            {{"node", [&](const yaml::Node& one) { readCount(one, policy_.mostOfNode); }},
             {"job", [&](const yaml::Node& one) { readCount(one, policy_.mostOfJob); }}});
  }

  void readCommand(const yaml::Node& node, std::vector<std::string>& words) {
    if (node.kind != yaml::Node::Kind::kScalar) {
      refuse(node.where, fmt::format("expected a command, like '/usr/sbin/drain on', found {}",
                                     yaml::describe(node)));
      return;
    }
    auto split = splitCommand(node.text);
    if (!split.ok()) {
      refuse(node.where, split.status().message());
    } else if (!split->front().starts_with('/')) {
      // PATH is the user's.
      refuse(node.where, fmt::format("'{}' is no absolute path, like /usr/sbin/drain",
                                     yaml::shortened(split->front())));
    } else {
      words = *std::move(split);
    }
  }

  std::string_view source_;
  std::span<const std::string_view> kinds_;
  Policy policy_;
  std::string mistakes_;
};

std::string whoMayAsk(const Policy& policy) {
  std::string words = "root";
  if (!policy.users.empty()) words += ", " + joined(policy.users);
  if (!policy.groups.empty()) {
    words += fmt::format(" and the {} {}", policy.groups.size() == 1 ? "group" : "groups",
                         joined(policy.groups));
  }
  return words;
}

}  // namespace

Result<Policy> parsePolicy(std::string_view text, std::string_view source,
                           std::span<const std::string_view> knownKinds) {
  return Reader(source, knownKinds).read(text);
}

Status allows(const Policy& policy, const Request& request) {
  const auto has = [](const std::vector<std::string>& words, const std::string& word) {
    return !word.empty() && std::ranges::find(words, word) != words.end();
  };
  if (!has(policy.mayStrike, request.interface) && !has(policy.mayStrike, request.pci)) {
    return errorf(
        Code::kPermissionDenied,
        "the policy lets {} be struck, and not {}; its owner adds that to may_strike",
        joined(policy.mayStrike),
        request.pci.empty() ? request.interface : fmt::format("{} ({})", request.interface, request.pci));
  }
  if (!has(policy.kinds, request.kind)) {
    return errorf(Code::kPermissionDenied,
                  "the policy allows {}, and not {}; its owner adds that to kinds",
                  joined(policy.kinds), request.kind);
  }
  if (request.length > policy.longest) {
    return errorf(Code::kPermissionDenied,
                  "the policy allows {} at most, and not {}; ask for less, or its owner raises "
                  "longest",
                  formatDuration(policy.longest), formatDuration(request.length));
  }
  if (request.heldOnNode >= policy.mostOfNode) {
    return errorf(
        Code::kUnavailable,
        "the policy allows {} at once on this machine, and there are {} already; wait for "
        "its end, or see 'faultline status' for what was left",
        policy.mostOfNode, request.heldOnNode);
  }
  if (request.heldByJob >= policy.mostOfJob) {
    return errorf(Code::kUnavailable,
                  "the policy allows {} at once of one job, and this one has {} already; wait for "
                  "its end, or see 'faultline status' for what was left",
                  policy.mostOfJob, request.heldByJob);
  }
  return okStatus();
}

Status mayAsk(const Policy& policy, const Caller& caller) {
  const auto named = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  const bool inGroup = std::ranges::any_of(
      caller.groups, [&](const std::string& group) { return named(policy.groups, group); });
  if (caller.uid == 0 || inGroup || named(policy.users, caller.user)) return okStatus();
  return errorf(Code::kPermissionDenied,
                "the policy lets {} ask the fault service, and not {}; its owner adds that to "
                "users, or one of its groups to groups",
                whoMayAsk(policy), caller.user);
}

std::string inWords(const Policy& policy) {
  std::string words = fmt::format(
      "{} may be struck, by {}, for {} at most, {} at once on this machine and {} of one job",
      joined(policy.mayStrike), joined(policy.kinds), formatDuration(policy.longest),
      policy.mostOfNode, policy.mostOfJob);
  if (!policy.before.empty()) {
    words += fmt::format("; {} runs before and {} after, {} at most", policy.before.front(),
                         policy.after.front(), formatDuration(policy.commandLimit));
  }
  if (!policy.keep.empty()) {
    words += fmt::format("; the way to {} is never cut", joined(policy.keep));
  }
  if (!policy.users.empty() || !policy.groups.empty()) {
    words += fmt::format("; {} may ask the fault service", whoMayAsk(policy));
  }
  return words;
}

std::string policyToStartFrom(std::string_view interface, std::string_view kind) {
  return fmt::format(
      "version: 1\n"
      "may_strike: [{}]          # interfaces, or PCI addresses like \"0000:17:00.0\"\n"
      "kinds: [{}]\n"
      "longest: 10s\n"
      "at_once: {{node: 1, job: 1}}\n",
      interface, kind);
}

}  // namespace faultline::safety
