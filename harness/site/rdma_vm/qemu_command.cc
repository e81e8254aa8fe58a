#include "harness/site/rdma_vm/qemu_command.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace faultline::rdma_vm {
namespace {

/// Commas separate options: inside of one they are written twice.
std::string quoted(const std::string& text) {
  std::string result;
  for (const char letter : text) result.append(letter == ',' ? 2 : 1, letter);
  return result;
}

/// panic=-1: reboot at once, which -no-reboot makes qemu's end. tsc: what the kernel else measures
/// for seconds. Mitigations of a processor's leaks cost what emulation has none of, and memory that
/// is cleared or checked against attackers is emulated, too.
constexpr const char* kKernelArguments =
    "console=ttyS0 quiet panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check "
    "random.trust_cpu=on init_on_alloc=0 hardened_usercopy=off randomize_kstack_offset=off "
    "cryptomgr.notests nowatchdog rcupdate.rcu_expedited=1";

/// All that can be emulated, but for what makes it slower: with fast strings the kernel copies and
/// clears byte by byte, which the emulation does, too, instead of eight at a time; a fifth level of
/// page tables is one more to walk; each copy from a program turns the guard against it off and on.
constexpr const char* kProcessor = "max,erms=off,fsrm=off,la57=off,smap=off,smep=off";

}  // namespace

std::string qemuNicName(int nic) { return fmt::format("nic{}", nic); }

std::vector<std::string> qemuCommand(const VmSpec& spec, int host, const std::string& kernel,
                                     const QemuFds& fds) {
  // -sandbox and KVM are left alone: labs without either are what this is for.
  std::vector<std::string> command{
      kQemuProgram,
      "-nodefaults",
      "-no-user-config",
      "-no-reboot",
      "-display",
      "none",
      "-machine",
      "q35,accel=tcg",
      "-cpu",
      kProcessor,
      "-smp",
      "1",
      "-m",
      std::to_string(spec.memoryMiB),
      "-name",
      fmt::format("faultline-host{}", host),
      "-kernel",
      kernel,
      "-initrd",
      fmt::format("/proc/self/fd/{}", fds.initramfs),
      "-append",
      kKernelArguments,
      "-serial",
      "stdio",
      "-chardev",
      fmt::format("socket,id=qmp,fd={}", fds.qmp),
      "-mon",
      "chardev=qmp,mode=control",
      "-device",
      "virtio-serial-pci",
      "-chardev",
      fmt::format("socket,id=agent,fd={}", fds.agent),
      "-device",
      fmt::format("virtserialport,chardev=agent,name={}", kAgentPortName),
  };
  const auto add = [&](const char* option, std::string value) {
    command.emplace_back(option);
    command.push_back(std::move(value));
  };
  add("-device", "virtio-rng-pci");
  // multidevs: files of several devices are told apart; without it /proc and /sys of the guest
  // cannot be mounted over those of the machine.
  add("-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap");
  add("-device", fmt::format("virtio-9p-pci,fsdev=root,mount_tag={}", kRootTag));
  if (!spec.sharedFolder.empty()) {
    add("-fsdev", fmt::format("local,id=shared,path={},security_model=none,multidevs=remap",
                              quoted(spec.sharedFolder)));
    add("-device", fmt::format("virtio-9p-pci,fsdev=shared,mount_tag={}", kSharedTag));
  }
  for (int nic = 0; nic < static_cast<int>(fds.nics.size()); ++nic) {
    const std::string name = qemuNicName(nic);
    add("-netdev", fmt::format("dgram,id={},local.type=fd,local.str={}", name,
                               fds.nics[static_cast<std::size_t>(nic)]));
    // Without its boot program a NIC costs no time before the kernel.
    add("-device", fmt::format("virtio-net-pci,id=device-{0},netdev={0},mac={1},romfile=,"
                               "host_mtu={2}",
                               name, inWords(macOf(host, nic)), VmSpec::kLargestMtu));
  }
  return command;
}

}  // namespace faultline::rdma_vm
