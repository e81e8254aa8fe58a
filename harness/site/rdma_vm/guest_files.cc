#include "harness/site/rdma_vm/guest_files.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/executable.h"
#include "base/input_file.h"
#include "harness/launch/executable.h"
#include "harness/site/rdma_vm/cpio_archive.h"
#include "harness/site/rdma_vm/init_program.h"
#include "harness/site/rdma_vm/module_order.h"
#include "harness/site/rdma_vm/qemu_command.h"

namespace faultline::rdma_vm {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModuleFolder = "/module";
constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<UniqueFd> inMemory(std::string_view bytes) {
  UniqueFd fd(::memfd_create("faultline-initramfs", MFD_CLOEXEC));
  if (!fd) return Status::fromErrno(errno, "make the guests' first file system");
  while (!bytes.empty()) {
    const ssize_t size = ::write(fd.get(), bytes.data(), bytes.size());
    if (size < 0) return Status::fromErrno(errno, "write the guests' first file system");
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return fd;
}

}  // namespace

std::string kernelFolder() {
  if (std::string own = variable("FAULTLINE_RDMA_KERNEL"); !own.empty()) return own;
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty()) cache = variable("HOME") + "/.cache";
  return cache + "/faultline/rdma_kernel";
}

Result<KernelFiles> findKernel(const std::string& folder) {
  KernelFiles files{folder + "/vmlinuz", folder + "/modules", "unknown"};
  std::error_code error;
  for (const std::string& path : {files.image, files.modules + "/modules.dep"}) {
    if (fs::exists(path, error)) continue;
    return errorf(Code::kNotFound,
                  "there is no kernel for guests: {} is missing. On Debian ci/rdma_kernel.sh "
                  "fetches one into the cache; FAULTLINE_RDMA_KERNEL names another folder",
                  path);
  }
  if (const auto version = readFile(folder + "/version"); version.ok()) {
    std::istringstream(*version) >> files.version;
  }
  return files;
}

Result<std::string> findOnPath(const std::string& name, const std::string& workingDirectory) {
  const std::string path = variable("PATH");
  return findExecutable(name, workingDirectory, path.empty() ? kDefaultPath : path);
}

Result<std::string> findQemu() {
  auto found = findOnPath(kQemuProgram);
  if (found.ok()) return found;
  return errorf(Code::kNotFound,
                "{} is not on the PATH: install it (apt-get install "
                "qemu-system-x86)",
                kQemuProgram);
}

Result<UniqueFd> makeInitramfs(const KernelFiles& kernel, const std::string& agent,
                               const std::string& shared) {
  ASSIGN_OR_RETURN(const std::string dependencies, readFile(kernel.modules + "/modules.dep"));
  ASSIGN_OR_RETURN(const std::vector<std::string> order, moduleOrder(dependencies, guestModules()));
  CpioArchive archive;
  archive.addFolder("dev");
  archive.addFolder(kModuleFolder + 1);  // paths in an archive have no slash in front
  archive.addFile("init", initProgram(), /*executable=*/true);
  std::string list;
  for (const std::string& path : order) {
    const std::string in_guest = kModuleFolder + path.substr(path.rfind('/'));
    ASSIGN_OR_RETURN(const std::string bytes, readFile(kernel.modules + "/" + path));
    archive.addFile(in_guest.substr(1), bytes);
    list += in_guest + "\n";
  }
  archive.addFile("modules", list);
  archive.addFile("config", agent + "\n" + shared + "\n");
  return inMemory(std::move(archive).finish());
}

std::vector<Need> laboratoryNeeds() {
  std::vector<Need> needs;
  const auto add = [&](const char* name, const auto& result, const std::string& found,
                       const char* remedy) {
    needs.push_back({name, result.ok(), result.ok() ? found : result.status().message(), remedy});
  };
  const auto qemu = findQemu();
  add("qemu", qemu, qemu.ok() ? *qemu : "", "apt-get install qemu-system-x86");
  const auto kernel = findKernel(kernelFolder());
  add("kernel for guests", kernel, kernel.ok() ? kernel->version : "",
      "run ci/rdma_kernel.sh (Debian)");
  needs.push_back(
      {"init program of guests", !initProgram().empty(),
       initProgram().empty() ? "not built in: there was no static C library" : "built in",
       "install the static C library (libc6-dev), configure and build again"});
  return needs;
}

Status laboratoryPossible() {
  for (const Need& need : laboratoryNeeds()) {
    if (need.ok) continue;
    return errorf(Code::kUnsupported, "no soft-RoCE laboratory here: {}: {} ({})", need.name,
                  need.found, need.remedy);
  }
  return okStatus();
}

}  // namespace faultline::rdma_vm
