#include "resilient_ccl/transport/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <new>
#include <utility>

#include "base/limits.h"

namespace faultline::transport::shm {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kBegin = (sizeof(Segment::Shared) + kPage - 1) / kPage * kPage;
constexpr std::size_t kPerDirection = Segment::kPayloadRing + Segment::kDatagramRing;
constexpr std::size_t kSize = kBegin + 2 * kPerDirection;
// Nobody can shorten what the other end has mapped: touching what is cut off ends a process.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Result<Segment> Segment::create() {
  UniqueFd memory(memfd_create("faultline-rail", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return callRefused(errno, "memfd_create", "create shared memory");
  if (ftruncate(memory.get(), kSize) != 0) return Status::fromErrno(errno, "size shared memory");
  if (fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) {
    return Status::fromErrno(errno, "seal shared memory");
  }
  ASSIGN_OR_RETURN(Segment segment, map(std::move(memory)));
  new (segment.base_) Shared;
  return segment;
}

Result<Segment> Segment::open(UniqueFd memory) {
  struct stat about {};
  const int seals = fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(memory.get(), &about) != 0 ||
      about.st_size != static_cast<off_t>(kSize)) {
    return errorf(Code::kInvalidArgument, "what the peer shares is not the memory of a rail");
  }
  return map(std::move(memory));
}

Result<Segment> Segment::map(UniqueFd memory) {
  void* const base =
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memory.get(), 0);
  if (base == MAP_FAILED) return Status::fromErrno(errno, "map shared memory");
  return Segment(std::move(memory), static_cast<std::byte*>(base));
}

Segment::Segment(Segment&& other) noexcept
    : memory_(std::move(other.memory_)), base_(std::exchange(other.base_, nullptr)) {}

Segment::~Segment() {
  if (base_ != nullptr) munmap(base_, kSize);
}

std::span<std::byte> Segment::payload(int direction) const {
  return {base_ + kBegin + direction * kPerDirection, kPayloadRing};
}

std::span<std::byte> Segment::datagrams(int direction) const {
  return {base_ + kBegin + direction * kPerDirection + kPayloadRing, kDatagramRing};
}

}  // namespace faultline::transport::shm
