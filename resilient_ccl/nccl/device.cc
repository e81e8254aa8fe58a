#include "resilient_ccl/nccl/device.h"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

#include "resilient_ccl/channel/hearing.h"

namespace faultline::nccl {
namespace {

constexpr std::uint32_t kLinkLocal = 0xa9fe;  // 169.254.0.0/16, RFC 3927

std::string firstLine(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

template <typename T>
bool parseWhole(std::string_view text, T& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// "0000:17:00.1" without the function: 0x00001700; "02:42:ac:11:00:02" as a number.
std::uint64_t hexDigits(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ':') digits += c;
  }
  std::uint64_t value = 0;
  return parseWhole(digits, value, 16) ? value : 0;
}

/// "0000:17:00.1".
bool isPciFunction(std::string_view name) {
  constexpr std::size_t kShortest = 12;
  const std::size_t colons = static_cast<std::size_t>(std::ranges::count(name, ':'));
  return name.size() >= kShortest && name[name.size() - 2] == '.' && colons == 2 &&
         name.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
}

/// The nearest PCI function at or above a device's real path; empty: there is none.
std::filesystem::path pciFunctionOf(std::filesystem::path device) {
  while (device.has_relative_path() && !isPciFunction(device.filename().string())) {
    device = device.parent_path();
  }
  return device.has_relative_path() ? device : std::filesystem::path();
}

std::string namesOf(const std::vector<Interface>& interfaces) {
  std::vector<std::string> names;
  for (const Interface& one : interfaces) names.push_back(one.name + (one.up ? "" : " (down)"));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool takesInterface(const std::string& rules, const std::string& name) {
  if (rules.empty()) return !takesInterface("lo,docker,virbr", name);
  std::string_view list = rules;
  const bool excludes = list.starts_with('^');
  if (excludes) list.remove_prefix(1);
  const bool whole = list.starts_with('=');
  if (whole) list.remove_prefix(1);
  bool any = list.empty();
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    // A port behind the name ("mlx5_0:1") is of other transports.
    const std::string_view word = list.substr(0, std::min(end, list.find(':')));
    if (!word.empty() && (whole ? name == word : name.starts_with(word))) any = true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return any != excludes;
}

Result<std::vector<Interface>> chooseRails(const std::vector<Interface>& interfaces,
                                           const std::vector<std::string>& named,
                                           const std::string& rules) {
  std::vector<Interface> rails;
  for (const std::string& name : named) {
    const auto found = std::ranges::find(interfaces, name, &Interface::name);
    if (found == interfaces.end()) {
      return errorf(Code::kNotFound,
                    "FAULTLINE_NICS names {}, which is no interface with an IPv4 address; here are "
                    "{}",
                    name, namesOf(interfaces));
    }
    if (std::ranges::find(rails, name, &Interface::name) != rails.end()) {
      return errorf(Code::kInvalidArgument, "FAULTLINE_NICS names {} twice", name);
    }
    rails.push_back(*found);
  }
  for (const Interface& one : interfaces) {
    const bool loopback = one.loopback && rules.empty();
    if (named.empty() && one.up && !loopback && takesInterface(rules, one.name))
      rails.push_back(one);
  }
  if (rails.empty()) {
    return errorf(
        Code::kNotFound, "no interface can be a rail{}; here are {}: name some in FAULTLINE_NICS",
        rules.empty() ? "" : fmt::format(" (NCCL_SOCKET_IFNAME={})", rules), namesOf(interfaces));
  }
  if (rails.size() > channel::kMaxRails) {
    return errorf(Code::kNotFound,
                  "{} interfaces would be rails ({}), {} at most can: name some in FAULTLINE_NICS",
                  rails.size(), namesOf(rails), channel::kMaxRails);
  }
  return rails;
}

Result<Interface> chooseManagement(const std::vector<Interface>& interfaces,
                                   const std::string& named, const std::string& rules,
                                   const std::vector<Interface>& rails) {
  if (!named.empty()) {
    const auto found = std::ranges::find(interfaces, named, &Interface::name);
    if (found != interfaces.end()) return *found;
    return errorf(Code::kNotFound,
                  "FAULTLINE_MANAGEMENT={} is no interface with an IPv4 address; here are {}",
                  named, namesOf(interfaces));
  }
  const auto usable = [&](const Interface& one) {
    return one.up && std::ranges::find(rails, one.name, &Interface::name) == rails.end();
  };
  for (const Interface& one : interfaces) {
    if (!rules.empty() && usable(one) && takesInterface(rules, one.name)) return one;
  }
  for (const Interface& one : interfaces) {
    const bool ofItsLink = one.address >> 16 == kLinkLocal;  // of a server's own controller, mostly
    if (usable(one) && !one.loopback && !ofItsLink && takesInterface("", one.name)) return one;
  }
  return rails.front();
}

Result<std::vector<Interface>> listInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return Status::fromErrno(errno, "list the network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if (std::ranges::find(interfaces, one->ifa_name, &Interface::name) != interfaces.end()) {
      continue;  // its second address
    }
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    interfaces.push_back({.name = one->ifa_name,
                          .address = ntohl(address->sin_addr.s_addr),
                          .up = (one->ifa_flags & IFF_UP) != 0,
                          .loopback = (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return interfaces;
}

Device inspect(const Interface& interface, const std::string& sysfs) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(sysfs) / "class" / "net" / interface.name;
  Device device{.interface = interface, .pciPath = {}};
  device.guid = hexDigits(firstLine(folder / "address"));
  std::error_code error;
  const fs::path real = fs::canonical(folder / "device", error);
  const fs::path function = error ? fs::path() : pciFunctionOf(real);
  if (!function.empty()) {
    // "0000:17:00.1": a card's functions share its ports' way to the processor.
    const std::string address = function.filename().string();
    device.pciPath = function.string();
    device.guid = hexDigits(address.substr(0, address.find('.')));
    // A card has a function for each of its ports, or one whose ports `dev_port` counts; some
    // drivers of the former count in both. NCCL takes two NICs with the same guid and port for one.
    (void)parseWhole(address.substr(address.find('.') + 1), device.port);
  }
  int speed = 0;
  const bool known = parseWhole(firstLine(folder / "speed"), speed) && speed > 0;
  device.speed = known ? speed : kUnknownSpeed;
  int port = 0;
  if (parseWhole(firstLine(folder / "dev_port"), port)) device.port = std::max(device.port, port);
  if (!parseWhole(firstLine(function / "numa_node"), device.numaNode)) device.numaNode = -1;
  return device;
}

}  // namespace faultline::nccl
