#pragma once

#include <cstddef>
#include <cstdint>

/// The network plugin interface of NCCL in the versions 10 (NCCL 2.27), 11 (2.28, 2.29) and 12
/// (2.30), as far as a plugin needs it: layouts and meanings as published (NCCL's documentation of
/// network plugins, and the headers of its examples), written down here so that neither NCCL nor
/// CUDA is needed to build. Names are ours; only the layout is NCCL's.
namespace faultline::nccl {

/// ncclResult_t.
enum class NetResult : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
};

/// ncclDebugLogLevel, and of the subsystems the one of networks.
enum class NetLogLevel : int { kWarn = 2, kInfo = 3, kTrace = 5 };
inline constexpr unsigned long kNetSubsystem = 16;
inline constexpr unsigned long kInitSubsystem = 1;

using NetLogger = void (*)(NetLogLevel level, unsigned long subsystems, const char* file, int line,
                           const char* format, ...);
using NetProfiler = NetResult (*)(void** event, int type, void* parent, std::int64_t plugin,
                                  void* data);

inline constexpr std::size_t kNetHandleBytes = 128;
/// Requests that NCCL may have open on one connection; a grouped receive is one.
inline constexpr int kNetMaxRequests = 32;
inline constexpr int kNetPointerHost = 1;
/// The largest transfer that NCCL accepts as a limit.
inline constexpr std::size_t kNetMaxBytes = std::size_t{1} << 40;

/// Member devices of a virtual NIC.
template <int kMost>
struct NetVirtualDevice {
  int count;
  int devices[kMost];
};

struct NetPropertiesV10 {
  char* name;
  char* pciPath;  ///< in /sys; null: not known
  std::uint64_t guid;
  int pointerSupport;
  int registrationIsGlobal;
  int forceFlush;
  int speed;  ///< Mbit/s
  int port;
  float latency;  ///< us
  int maxConnections;
  int maxReceives;  ///< buffers of a grouped receive
  int deviceType;   ///< 0: the host drives the network
  int deviceVersion;
  NetVirtualDevice<4> virtualDevice;
  std::size_t maxPointToPointBytes;
  std::size_t maxCollectiveBytes;
};

struct NetPropertiesV11 : NetPropertiesV10 {
  int maxMultiRequest;
};

struct NetPropertiesV12 {
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int pointerSupport;
  int registrationIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxConnections;
  int maxReceives;
  int deviceType;
  int deviceVersion;
  NetVirtualDevice<8> virtualDevice;
  std::size_t maxPointToPointBytes;
  std::size_t maxCollectiveBytes;
  int maxMultiRequest;
  std::int16_t railId;   ///< -1: not known
  std::int16_t planeId;  ///< -1: not known
};

/// Of a connection (10) or a communicator (11, 12).
struct NetConfig {
  int trafficClass;
};

// The calls that all three versions have in common, after `connect` of each.
template <typename VirtualDevice>
struct NetCalls {
  NetResult (*accept)(void* listener, void** connection, void** deviceHandle);
  NetResult (*regMr)(void* connection, void* data, std::size_t size, int type, void** region);
  NetResult (*regMrDmaBuf)(void* connection, void* data, std::size_t size, int type,
                           std::uint64_t offset, int fd, void** region);
  NetResult (*deregMr)(void* connection, void* region);
  NetResult (*isend)(void* connection, void* data, std::size_t size, int tag, void* region,
                     void* profile, void** request);
  NetResult (*irecv)(void* connection, int count, void** data, std::size_t* sizes, int* tags,
                     void** regions, void** profiles, void** request);
  NetResult (*iflush)(void* connection, int count, void** data, int* sizes, void** regions,
                      void** request);
  NetResult (*test)(void* request, int* done, int* sizes);
  NetResult (*closeSend)(void* connection);
  NetResult (*closeRecv)(void* connection);
  NetResult (*closeListen)(void* listener);
  NetResult (*getDeviceMr)(void* connection, void* region, void** deviceRegion);
  NetResult (*irecvConsumed)(void* connection, int count, void* request);
  NetResult (*makeVDevice)(int* device, VirtualDevice* members);
};

struct NetPluginV10 {
  const char* name;
  NetResult (*init)(NetLogger log, NetProfiler profile);
  NetResult (*devices)(int* count);
  NetResult (*getProperties)(int device, NetPropertiesV10* properties);
  NetResult (*listen)(int device, void* handle, void** listener);
  NetResult (*connect)(int device, NetConfig* config, void* handle, void** connection,
                       void** deviceHandle);
  NetCalls<NetVirtualDevice<4>> calls;
};

template <typename Properties, typename VirtualDevice>
struct NetPluginWithContext {
  const char* name;
  NetResult (*init)(void** context, std::uint64_t communicator, NetConfig* config, NetLogger log,
                    NetProfiler profile);
  NetResult (*devices)(int* count);
  NetResult (*getProperties)(int device, Properties* properties);
  NetResult (*listen)(void* context, int device, void* handle, void** listener);
  NetResult (*connect)(void* context, int device, void* handle, void** connection,
                       void** deviceHandle);
  NetCalls<VirtualDevice> calls;
  NetResult (*finalize)(void* context);
  NetResult (*setNetAttr)(void* context, void* attributes);
};
using NetPluginV11 = NetPluginWithContext<NetPropertiesV11, NetVirtualDevice<4>>;
using NetPluginV12 = NetPluginWithContext<NetPropertiesV12, NetVirtualDevice<8>>;

// As compilers lay out what is published, on 64-bit machines.
static_assert(offsetof(NetPropertiesV10, guid) == 16);
static_assert(offsetof(NetPropertiesV10, speed) == 36);
static_assert(offsetof(NetPropertiesV10, latency) == 44);
static_assert(offsetof(NetPropertiesV10, virtualDevice) == 64);
static_assert(offsetof(NetPropertiesV10, maxPointToPointBytes) == 88);
static_assert(sizeof(NetPropertiesV10) == 104);
static_assert(sizeof(NetPropertiesV11) == 112);
static_assert(offsetof(NetPropertiesV12, virtualDevice) == 64);
static_assert(offsetof(NetPropertiesV12, maxPointToPointBytes) == 104);
static_assert(offsetof(NetPropertiesV12, maxMultiRequest) == 120);
static_assert(offsetof(NetPropertiesV12, railId) == 124);
static_assert(sizeof(NetPropertiesV12) == 128);
static_assert(sizeof(NetPluginV10) == 20 * sizeof(void*));
static_assert(sizeof(NetPluginV11) == 22 * sizeof(void*));
static_assert(sizeof(NetPluginV12) == 22 * sizeof(void*));

}  // namespace faultline::nccl
