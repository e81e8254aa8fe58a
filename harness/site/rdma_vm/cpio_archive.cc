#include "harness/site/rdma_vm/cpio_archive.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstddef>
#include <iterator>
#include <utility>

namespace faultline::rdma_vm {
namespace {

constexpr std::string_view kMagic = "070701";
constexpr std::string_view kTrailer = "TRAILER!!!";
constexpr std::size_t kAlignment = 4;

void align(std::string& bytes) {
  bytes.append((kAlignment - bytes.size() % kAlignment) % kAlignment, '\0');
}

}  // namespace

void CpioArchive::addFolder(std::string_view path) { add(path, S_IFDIR | 0755, ""); }

void CpioArchive::addFile(std::string_view path, std::string_view contents, bool executable) {
  add(path, S_IFREG | (executable ? 0755 : 0644), contents);
}

void CpioArchive::add(std::string_view path, unsigned mode, std::string_view contents) {
  const unsigned inode = ++entries_;  // equal ones would be links
  const unsigned links = 1;
  // magic, inode, mode, user, group, links, time, size, device (2), device that it is (2), size of
  // the name with its zero, checksum (of another format)
  fmt::format_to(std::back_inserter(bytes_),
                 "{}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}",
                 kMagic, inode, mode, 0, 0, links, 0, contents.size(), 0, 0, 0, 0, path.size() + 1,
                 0);
  bytes_.append(path).push_back('\0');
  align(bytes_);
  bytes_.append(contents);
  align(bytes_);
}

std::string CpioArchive::finish() && {
  add(kTrailer, 0, "");
  return std::move(bytes_);
}

}  // namespace faultline::rdma_vm
