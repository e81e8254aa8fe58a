#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::rdma_vm {

/// A kernel for guests, as ci/rdma_kernel.sh unpacks it.
struct KernelFiles {
  std::string image;    ///< path of vmlinuz
  std::string modules;  ///< folder with modules.dep
  std::string version;  ///< "6.1.0-56-amd64", or "unknown"
};

/// Where it is looked for: $FAULTLINE_RDMA_KERNEL, or in the user's cache ($XDG_CACHE_HOME, or
/// ~/.cache) the folder faultline/rdma_kernel.
std::string kernelFolder();

/// kNotFound, with what to do.
Result<KernelFiles> findKernel(const std::string& folder);

/// A program on the PATH of this process, which guests have too: they see its files.
Result<std::string> findOnPath(const std::string& name, const std::string& workingDirectory = "");

/// qemu on the PATH; kNotFound with what to do.
Result<std::string> findQemu();

/// What a guest starts with, in memory that has no name: the init program, the modules, and the two
/// paths that it has to know. `agent` is the program that it becomes, `shared` may be empty.
Result<UniqueFd> makeInitramfs(const KernelFiles& kernel, const std::string& agent,
                               const std::string& shared);

/// Something that a laboratory needs of this machine.
struct Need {
  std::string name;
  bool ok = false;
  std::string found;   ///< or what happened
  std::string remedy;  ///< when it is missing
};

/// All that it needs; looks, and starts nothing.
std::vector<Need> laboratoryNeeds();

/// kUnsupported with the first thing that is missing and what to do; for tests that are skipped.
Status laboratoryPossible();

}  // namespace faultline::rdma_vm
