#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <array>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "harness/nccl_bench/device.h"

namespace faultline::nccl_bench {
namespace {

using reduction::DataType;
using reduction::ReduceOp;
using schedule::Collective;

Status check(cudaError_t error, std::string_view attempt) {
  if (error == cudaSuccess) return okStatus();
  return errorf(Code::kIo, "CUDA: {}: {}", attempt, cudaGetErrorString(error));
}

Status check(ncclResult_t result, ncclComm_t communicator, std::string_view attempt) {
  if (result == ncclSuccess) return okStatus();
  const char* const last = ncclGetLastError(communicator);
  return errorf(Code::kUnavailable, "NCCL: {}: {}{}{}", attempt, ncclGetErrorString(result),
                last == nullptr || *last == '\0' ? "" : ": ", last == nullptr ? "" : last);
}

ncclDataType_t toNccl(DataType type) {
  switch (type) {
    case DataType::kF16:
      return ncclFloat16;
    case DataType::kBf16:
      return ncclBfloat16;
    case DataType::kF32:
      return ncclFloat32;
    case DataType::kF64:
      return ncclFloat64;
    case DataType::kI8:
      return ncclInt8;
    case DataType::kU8:
      return ncclUint8;
    case DataType::kI32:
      return ncclInt32;
    case DataType::kU32:
      return ncclUint32;
    case DataType::kI64:
      return ncclInt64;
    case DataType::kU64:
      break;
  }
  return ncclUint64;
}

ncclRedOp_t toNccl(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return ncclSum;
    case ReduceOp::kProd:
      return ncclProd;
    case ReduceOp::kMin:
      return ncclMin;
    case ReduceOp::kMax:
      return ncclMax;
    case ReduceOp::kAvg:
      break;
  }
  return ncclAvg;
}

/// Makes the GPU the current one. NVIDIA's multi-process service refuses a client while it clears
/// up after others that were killed, seconds at most: so this asks again for a while.
Status use(int ordinal) {
  constexpr Duration kPatience = 15s, kPause = 200ms;
  const TimePoint last = now() + kPatience;
  for (;;) {
    const cudaError_t error = cudaSetDevice(ordinal);
    if (error != cudaErrorDevicesUnavailable || now() >= last) {
      return check(error, fmt::format("use GPU {}", ordinal));
    }
    (void)cudaGetLastError();  // forgets it
    std::this_thread::sleep_for(kPause);
  }
}

/// Memory of the GPU that is current.
class GpuMemory {
 public:
  GpuMemory() = default;
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory() { (void)cudaFree(data_); }
  Status allocate(Bytes size) {
    return check(cudaMalloc(reinterpret_cast<void**>(&data_), static_cast<std::size_t>(size)),
                 fmt::format("allocate {} bytes", size));
  }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
};

/// What the machine calls itself until it is booted again.
std::string bootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

class Gpu final : public Device {
 public:
  ~Gpu() override {
    if (communicator_ != nullptr) (void)ncclCommAbort(communicator_);
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }

  Status open(int ordinal, Bytes largest) {
    RETURN_IF_ERROR(use(ordinal));
    cudaDeviceProp properties{};
    RETURN_IF_ERROR(check(cudaGetDeviceProperties(&properties, ordinal), "ask for its properties"));
    std::array<char, 32> bus{};
    RETURN_IF_ERROR(
        check(cudaDeviceGetPCIBusId(bus.data(), bus.size(), ordinal), "ask where it is"));
    name_ = fmt::format("device {:>2} [{}] {}", ordinal, bus.data(), properties.name);
    identity_ = fmt::format("{} {}", bootId(), bus.data());
    RETURN_IF_ERROR(
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream"));
    RETURN_IF_ERROR(input_.allocate(largest));
    return result_.allocate(largest);
  }

  std::string libraryVersion() const override {
    int code = 0;
    if (ncclGetVersion(&code) != ncclSuccess) return "unknown";
    return fmt::format("{}.{}.{}", code / 10'000, code / 100 % 100, code % 100);  // NCCL_VERSION
  }
  std::string name() const override { return name_; }
  std::string identity() const override { return identity_; }

  Result<std::string> newCommunicatorId() override {
    ncclUniqueId id;
    RETURN_IF_ERROR(check(ncclGetUniqueId(&id), nullptr, "make an id"));
    return std::string(id.internal, sizeof id.internal);
  }

  Status join(const std::string& communicatorId, int rank, int ranks) override {
    ncclUniqueId id;
    if (communicatorId.size() != sizeof id.internal) {
      return errorf(Code::kInvalidArgument, "an id of {} bytes is none of NCCL's",
                    communicatorId.size());
    }
    std::memcpy(id.internal, communicatorId.data(), sizeof id.internal);
    ncclComm_t made = nullptr;
    RETURN_IF_ERROR(check(ncclCommInitRank(&made, ranks, id, rank), nullptr,
                          fmt::format("become rank {} of {}", rank, ranks)));
    const std::scoped_lock lock(mutex_);
    communicator_ = made;
    return okStatus();
  }

  Status upload(workload::CollectiveBuffers& buffers) override {
    const std::span<std::byte> result = buffers.result();
    const std::span<std::byte> source = buffers.source();
    RETURN_IF_ERROR(copy(result_.data(), result.data(), result.size()));
    offset_ = buffers.target().data() - result.data();
    if (buffers.cell().inPlace) {
      source_ = result_.data() + (source.data() - result.data());
      return okStatus();
    }
    source_ = input_.data();
    return copy(input_.data(), source.data(), source.size());
  }

  Status launch(const workload::CollectiveBuffers& buffers) override {
    const std::scoped_lock lock(mutex_);
    return check(call(buffers), communicator_, "call");
  }

  Result<bool> done() override {
    const cudaError_t state = cudaStreamQuery(stream_);
    if (state == cudaSuccess) return true;
    if (state != cudaErrorNotReady) return check(state, "look whether calls are done");
    ncclResult_t failure = ncclSuccess;
    const std::scoped_lock lock(mutex_);
    RETURN_IF_ERROR(
        check(ncclCommGetAsyncError(communicator_, &failure), communicator_, "ask for errors"));
    if (failure != ncclSuccess && failure != ncclInProgress) {
      return check(failure, communicator_, "a call");
    }
    return false;
  }

  Status download(workload::CollectiveBuffers& buffers) override {
    const std::span<std::byte> result = buffers.result();
    return check(cudaMemcpy(result.data(), result_.data(), result.size(), cudaMemcpyDeviceToHost),
                 "copy the result from the GPU");
  }

  Status abort() override {
    const std::scoped_lock lock(mutex_);
    return check(ncclCommAbort(std::exchange(communicator_, nullptr)), nullptr, "abort");
  }

  Status shrink(const std::vector<int>& without) override {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3)
    std::vector<int> ranks = without;
    const std::scoped_lock lock(mutex_);
    ncclComm_t smaller = nullptr;
    RETURN_IF_ERROR(
        check(ncclCommShrink(communicator_, ranks.data(), static_cast<int>(ranks.size()), &smaller,
                             nullptr, NCCL_SHRINK_ABORT),
              communicator_, "shrink"));
    ncclComm_t const larger = std::exchange(communicator_, smaller);
    return check(ncclCommAbort(larger), nullptr, "give up the communicator that was shrunk");
#else
    (void)without;
    return errorf(Code::kUnsupported, "shrink: ncclCommShrink came with NCCL 2.27.3, this is {}",
                  libraryVersion());
#endif
  }

  void giveUp() override {
    const std::scoped_lock lock(mutex_);
    if (communicator_ != nullptr) (void)ncclCommAbort(std::exchange(communicator_, nullptr));
  }

 private:
  static Status copy(std::byte* to, const std::byte* from, std::size_t size) {
    return check(cudaMemcpy(to, from, size, cudaMemcpyHostToDevice), "copy data to the GPU");
  }

  ncclResult_t call(const workload::CollectiveBuffers& buffers) {
    const scenario::SweepCell& cell = buffers.cell();
    const auto count = static_cast<std::size_t>(buffers.count());
    const ncclDataType_t type = toNccl(cell.dtype);
    const ncclRedOp_t op = toNccl(cell.op);
    void* const target = result_.data() + offset_;
    switch (cell.operation) {
      case Collective::kAllReduce:
        return ncclAllReduce(source_, target, count, type, op, communicator_, stream_);
      case Collective::kReduceScatter:
        return ncclReduceScatter(source_, target, count, type, op, communicator_, stream_);
      case Collective::kAllGather:
        return ncclAllGather(source_, target, count, type, communicator_, stream_);
      case Collective::kBroadcast:
        return ncclBroadcast(source_, target, count, type, 0, communicator_, stream_);
      case Collective::kReduce:
        return ncclReduce(source_, target, count, type, op, 0, communicator_, stream_);
      case Collective::kAllToAll:
      case Collective::kSendRecv:
        break;
    }
    return exchangePairwise(cell, count, type, target);
  }

  /// What NCCL has no collective for, in one group of sends and receives.
  ncclResult_t exchangePairwise(const scenario::SweepCell& cell, std::size_t count,
                                ncclDataType_t type, void* target) {
    int rank = 0, ranks = 0;
    if (const auto bad = ncclCommUserRank(communicator_, &rank); bad != ncclSuccess) return bad;
    if (const auto bad = ncclCommCount(communicator_, &ranks); bad != ncclSuccess) return bad;
    const bool all = cell.operation == Collective::kAllToAll;
    const std::size_t block = count * static_cast<std::size_t>(reduction::sizeOf(cell.dtype));
    ncclResult_t result = ncclGroupStart();
    for (int i = 0; i < (all ? ranks : 1) && result == ncclSuccess; ++i) {
      const std::size_t at = all ? static_cast<std::size_t>(i) * block : 0;
      const int to = all ? i : (rank + 1) % ranks;
      const int from = all ? i : (rank + ranks - 1) % ranks;
      result = ncclSend(source_ + at, count, type, to, communicator_, stream_);
      if (result != ncclSuccess) break;
      result =
          ncclRecv(static_cast<std::byte*>(target) + at, count, type, from, communicator_, stream_);
    }
    const ncclResult_t ended = ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
  }

  GpuMemory input_;
  GpuMemory result_;
  const std::byte* source_ = nullptr;
  std::ptrdiff_t offset_ = 0;  // of the target in the result
  cudaStream_t stream_ = nullptr;
  std::mutex mutex_;
  ncclComm_t communicator_ = nullptr;  // of mutex_
  std::string name_;
  std::string identity_;
};

}  // namespace

Result<std::unique_ptr<Device>> openGpu(int ordinal, Bytes largest) {
  auto gpu = std::make_unique<Gpu>();
  RETURN_IF_ERROR(gpu->open(ordinal, largest));
  return std::unique_ptr<Device>(std::move(gpu));
}

Result<int> countGpus() {
  int count = 0;
  RETURN_IF_ERROR(check(cudaGetDeviceCount(&count), "count GPUs"));
  return count;
}

}  // namespace faultline::nccl_bench
