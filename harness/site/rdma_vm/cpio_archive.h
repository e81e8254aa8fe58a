#pragma once

#include <string>
#include <string_view>

namespace faultline::rdma_vm {

/// An archive that the kernel unpacks as its first root file system: format "newc" of
/// Documentation/driver-api/early-userspace/buffer-format.rst, not compressed. Folders have to be
/// added before what is in them. Pure.
class CpioArchive {
 public:
  void addFolder(std::string_view path);
  void addFile(std::string_view path, std::string_view contents, bool executable = false);
  /// Ends the archive and hands it out.
  std::string finish() &&;

 private:
  void add(std::string_view path, unsigned mode, std::string_view contents);

  std::string bytes_;
  unsigned entries_ = 0;
};

}  // namespace faultline::rdma_vm
