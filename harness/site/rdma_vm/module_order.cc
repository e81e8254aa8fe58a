#include "harness/site/rdma_vm/module_order.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>

namespace faultline::rdma_vm {
namespace {

constexpr std::array<std::string_view, 17> kGuestModules{
    "virtio_pci", "virtio_net", "virtio_console",
    "crc32_generic",  // rxe asks for it by its algorithm; without it no device can be made
    "rdma_rxe", "ib_uverbs", "rdma_ucm",
    // What slows, loses and delays: they act on rxe, whose packets leave through the NIC.
    "sch_netem", "sch_tbf", "sch_htb", "sch_ingress", "cls_u32", "cls_bpf", "cls_matchall",
    // The machine's files.
    "9pnet_virtio", "9p", "overlay"};

/// "kernel/fs/9p/9p.ko" -> "9p". What the kernel calls a module has underscores.
std::string nameOf(std::string_view path) {
  std::string_view file = path.substr(path.rfind('/') + 1);
  std::string name(file.substr(0, file.find('.')));
  std::ranges::replace(name, '-', '_');
  return name;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::size_t size = std::min(text.find(' '), text.size());
    found.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return found;
}

}  // namespace

std::span<const std::string_view> guestModules() { return kGuestModules; }

Result<std::vector<std::string>> moduleOrder(std::string_view modulesDep,
                                             std::span<const std::string_view> wanted) {
  struct Module {
    std::string_view path;
    std::vector<std::string_view> needs;
  };
  std::map<std::string, Module> modules;
  while (!modulesDep.empty()) {
    const std::string_view line = modulesDep.substr(0, modulesDep.find('\n'));
    modulesDep.remove_prefix(std::min(modulesDep.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view path = line.substr(0, colon);
    modules[nameOf(path)] = {path, words(line.substr(colon + 1))};
  }
  std::vector<std::string> order;
  std::set<std::string_view> taken;
  const auto take = [&](std::string_view path) {
    if (taken.insert(path).second) order.emplace_back(path);
  };
  for (const std::string_view name : wanted) {
    const auto found = modules.find(std::string(name));
    if (found == modules.end()) {
      return errorf(Code::kNotFound,
                    "this kernel has no module {}: the cloud flavour lacks it, and where it is "
                    "built in, the laboratory has never been tried",
                    name);
    }
    // depmod puts those that others need at the end.
    const Module& module = found->second;
    for (auto need = module.needs.rbegin(); need != module.needs.rend(); ++need) take(*need);
    take(module.path);
  }
  return order;
}

}  // namespace faultline::rdma_vm
