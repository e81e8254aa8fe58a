// The symbols that NCCL looks up: one structure of calls for each version of its interface.

#include "resilient_ccl/nccl/library/edge.h"
#include "resilient_ccl/nccl/net_api.h"
#include "resilient_ccl/nccl/plugin.h"
#include "resilient_ccl/nccl/properties.h"

namespace faultline::nccl {
namespace {

// The name by which NCCL_NET chooses the network.
constexpr const char* kName = "Faultline";

Plugin& plugin() { return Plugin::instance(); }

template <typename Properties>
NetResult getProperties(int number, Properties* properties) {
  const Device* const device = plugin().device(number);
  if (device == nullptr) return NetResult::kInvalidArgument;
  *properties = propertiesOf<Properties>(*device, number);
  return NetResult::kSuccess;
}

NetResult devices(int* count) { return plugin().devices(count); }

// Devices do not drive the network themselves: there is nothing to tell them.
template <typename Call>
NetResult withoutDevice(void** deviceHandle, Call call) {
  if (deviceHandle != nullptr) *deviceHandle = nullptr;
  return call();
}

NetResult accept(void* listener, void** connection, void** deviceHandle) {
  return withoutDevice(deviceHandle, [&] { return plugin().accept(listener, connection); });
}
NetResult regMr(void*, void* data, std::size_t, int type, void** region) {
  return Plugin::registerMemory(type, data, region);
}
NetResult deregMr(void*, void*) { return NetResult::kSuccess; }
NetResult isend(void* connection, void* data, std::size_t size, int tag, void*, void*,
                void** request) {
  return plugin().isend(connection, data, size, tag, request);
}
NetResult irecv(void* connection, int count, void** data, std::size_t* sizes, int* tags, void**,
                void**, void** request) {
  // `request` may say on entry that completion is optional: it is told all the same.
  return plugin().irecv(connection, count, data, sizes, tags, request);
}
NetResult iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;  // host memory is as the processor sees it
  return NetResult::kSuccess;
}
NetResult test(void* request, int* done, int* sizes) { return plugin().test(request, done, sizes); }
NetResult close(void* connection) { return plugin().close(connection); }
NetResult closeListen(void* listener) { return plugin().closeListen(listener); }

template <typename VirtualDevice>
constexpr NetCalls<VirtualDevice> kCalls{.accept = Edge<accept>::cross,
                                         .regMr = Edge<regMr>::cross,
                                         .regMrDmaBuf = nullptr,
                                         .deregMr = Edge<deregMr>::cross,
                                         .isend = Edge<isend>::cross,
                                         .irecv = Edge<irecv>::cross,
                                         .iflush = Edge<iflush>::cross,
                                         .test = Edge<test>::cross,
                                         .closeSend = Edge<close>::cross,
                                         .closeRecv = Edge<close>::cross,
                                         .closeListen = Edge<closeListen>::cross,
                                         .getDeviceMr = nullptr,
                                         .irecvConsumed = nullptr,
                                         .makeVDevice = nullptr};

NetResult initV10(NetLogger log, NetProfiler) { return plugin().init(log, /*hasEnd=*/false); }
NetResult listenV10(int device, void* handle, void** listener) {
  return plugin().listen(device, handle, listener);
}
NetResult connectV10(int device, NetConfig*, void* handle, void** connection, void** deviceHandle) {
  return withoutDevice(deviceHandle, [&] { return plugin().connect(device, handle, connection); });
}

NetResult init(void** context, std::uint64_t, NetConfig*, NetLogger log, NetProfiler) {
  *context = &plugin();
  return plugin().init(log, /*hasEnd=*/true);
}
NetResult listen(void*, int device, void* handle, void** listener) {
  return plugin().listen(device, handle, listener);
}
NetResult connect(void*, int device, void* handle, void** connection, void** deviceHandle) {
  return withoutDevice(deviceHandle, [&] { return plugin().connect(device, handle, connection); });
}
NetResult finalize(void*) { return plugin().finalize(); }
NetResult setNetAttr(void*, void*) { return NetResult::kSuccess; }

template <typename Table, typename Properties, typename VirtualDevice>
constexpr Table tableWithContext() {
  return {.name = kName,
          .init = Edge<init>::cross,
          .devices = Edge<devices>::cross,
          .getProperties = Edge<getProperties<Properties>>::cross,
          .listen = Edge<listen>::cross,
          .connect = Edge<connect>::cross,
          .calls = kCalls<VirtualDevice>,
          .finalize = Edge<finalize>::cross,
          .setNetAttr = Edge<setNetAttr>::cross};
}

}  // namespace
}  // namespace faultline::nccl

// NCCL does not change what it finds here.
#define FAULTLINE_EXPORT extern "C" __attribute__((visibility("default")))

FAULTLINE_EXPORT const faultline::nccl::NetPluginV10 ncclNetPlugin_v10{
    .name = faultline::nccl::kName,
    .init = faultline::nccl::Edge<faultline::nccl::initV10>::cross,
    .devices = faultline::nccl::Edge<faultline::nccl::devices>::cross,
    .getProperties = faultline::nccl::Edge<
        faultline::nccl::getProperties<faultline::nccl::NetPropertiesV10>>::cross,
    .listen = faultline::nccl::Edge<faultline::nccl::listenV10>::cross,
    .connect = faultline::nccl::Edge<faultline::nccl::connectV10>::cross,
    .calls = faultline::nccl::kCalls<faultline::nccl::NetVirtualDevice<4>>};
FAULTLINE_EXPORT const faultline::nccl::NetPluginV11 ncclNetPlugin_v11 =
    faultline::nccl::tableWithContext<faultline::nccl::NetPluginV11,
                                      faultline::nccl::NetPropertiesV11,
                                      faultline::nccl::NetVirtualDevice<4>>();
FAULTLINE_EXPORT const faultline::nccl::NetPluginV12 ncclNetPlugin_v12 =
    faultline::nccl::tableWithContext<faultline::nccl::NetPluginV12,
                                      faultline::nccl::NetPropertiesV12,
                                      faultline::nccl::NetVirtualDevice<8>>();
