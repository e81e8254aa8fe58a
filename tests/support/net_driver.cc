#include "net_driver.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

namespace faultline::test {
namespace {

std::mutex logMutex;
std::vector<std::string>& logged(nccl::NetLogLevel level) {
  static std::map<nccl::NetLogLevel, std::vector<std::string>> lines;
  return lines[level];
}

void log(nccl::NetLogLevel level, unsigned long, const char*, int, const char* format, ...) {
  std::array<char, 1024> line;
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(line.data(), line.size(), format, arguments);
  va_end(arguments);
  if (std::getenv("NET_DRIVER_LOG") != nullptr) (void)fprintf(stderr, "%s\n", line.data());
  const std::lock_guard lock(logMutex);
  logged(level).emplace_back(line.data());
}

}  // namespace

struct NetDriver::Calls {
  void* library = nullptr;
  void* context = nullptr;
  int version = 0;
  const void* table = nullptr;
  nccl::NetCalls<nccl::NetVirtualDevice<4>> common;

  const auto& v10() const { return *static_cast<const nccl::NetPluginV10*>(table); }
  const auto& v11() const { return *static_cast<const nccl::NetPluginV11*>(table); }
  const auto& v12() const { return *static_cast<const nccl::NetPluginV12*>(table); }
};

NetDriver::NetDriver(const std::string& library, int version) : calls_(std::make_unique<Calls>()) {
  calls_->library = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (calls_->library == nullptr) {
    error_ = dlerror();
    return;
  }
  const std::string symbol = "ncclNetPlugin_v" + std::to_string(version);
  calls_->table = dlsym(calls_->library, symbol.c_str());
  if (calls_->table == nullptr) {
    error_ = dlerror();
    return;
  }
  calls_->version = version;
  switch (version) {
    case 10:
      calls_->common = calls_->v10().calls;
      break;
    case 11:
      calls_->common = calls_->v11().calls;
      break;
    default: {
      const auto& calls = calls_->v12().calls;
      calls_->common = {.accept = calls.accept,
                        .regMr = calls.regMr,
                        .regMrDmaBuf = calls.regMrDmaBuf,
                        .deregMr = calls.deregMr,
                        .isend = calls.isend,
                        .irecv = calls.irecv,
                        .iflush = calls.iflush,
                        .test = calls.test,
                        .closeSend = calls.closeSend,
                        .closeRecv = calls.closeRecv,
                        .closeListen = calls.closeListen,
                        .getDeviceMr = calls.getDeviceMr,
                        .irecvConsumed = calls.irecvConsumed,
                        .makeVDevice = nullptr};
    }
  }
}

NetDriver::~NetDriver() {
  if (calls_->library != nullptr) dlclose(calls_->library);
}

std::string NetDriver::name() const {
  return calls_->version == 10   ? calls_->v10().name
         : calls_->version == 11 ? calls_->v11().name
                                 : calls_->v12().name;
}

NetResult NetDriver::init() {
  nccl::NetConfig config{.trafficClass = -1};
  if (calls_->version == 10) return calls_->v10().init(log, nullptr);
  if (calls_->version == 11) {
    return calls_->v11().init(&calls_->context, 7, &config, log, nullptr);
  }
  return calls_->v12().init(&calls_->context, 7, &config, log, nullptr);
}

NetResult NetDriver::finalize() {
  if (calls_->version == 10) return NetResult::kSuccess;
  return calls_->version == 11 ? calls_->v11().finalize(calls_->context)
                               : calls_->v12().finalize(calls_->context);
}

int NetDriver::devices() {
  int count = -1;
  const NetResult result = calls_->version == 10   ? calls_->v10().devices(&count)
                           : calls_->version == 11 ? calls_->v11().devices(&count)
                                                   : calls_->v12().devices(&count);
  return result == NetResult::kSuccess ? count : -1;
}

NetResult NetDriver::properties(int device, Properties& out) {
  const auto take = [&](const auto& from) {
    out.name = from.name;
    out.pciPath = from.pciPath == nullptr ? "" : from.pciPath;
    out.speed = from.speed;
    out.port = from.port;
    out.registrationIsGlobal = from.registrationIsGlobal;
    out.forceFlush = from.forceFlush;
    out.deviceType = from.deviceType;
    out.latency = from.latency;
    out.firstMember = from.virtualDevice.devices[0];
    out.maxCollective = from.maxCollectiveBytes;
    if constexpr (requires { from.maxMultiRequest; }) out.maxMultiRequest = from.maxMultiRequest;
    if constexpr (requires { from.railId; }) {
      out.railId = from.railId;
      out.planeId = from.planeId;
    }
    out.pointers = from.pointerSupport;
    out.maxReceives = from.maxReceives;
    out.maxConnections = from.maxConnections;
    out.members = from.virtualDevice.count;
    out.maxPointToPoint = from.maxPointToPointBytes;
  };
  const auto ask = [&](const auto& table, auto properties) {
    std::memset(static_cast<void*>(&properties), 0x5a, sizeof(properties));
    const NetResult result = table.getProperties(device, &properties);
    if (result == NetResult::kSuccess) take(properties);
    return result;
  };
  if (calls_->version == 10) return ask(calls_->v10(), nccl::NetPropertiesV10{});
  if (calls_->version == 11) return ask(calls_->v11(), nccl::NetPropertiesV11{});
  return ask(calls_->v12(), nccl::NetPropertiesV12{});
}

NetResult NetDriver::listen(int device, void* handle, void** listener) {
  if (calls_->version == 10) return calls_->v10().listen(device, handle, listener);
  return calls_->version == 11 ? calls_->v11().listen(calls_->context, device, handle, listener)
                               : calls_->v12().listen(calls_->context, device, handle, listener);
}

NetResult NetDriver::connect(int device, void* handle, void** connection) {
  nccl::NetConfig config{.trafficClass = -1};
  void* offload = nullptr;
  if (calls_->version == 10) {
    return calls_->v10().connect(device, &config, handle, connection, &offload);
  }
  return calls_->version == 11
             ? calls_->v11().connect(calls_->context, device, handle, connection, &offload)
             : calls_->v12().connect(calls_->context, device, handle, connection, &offload);
}

NetResult NetDriver::accept(void* listener, void** connection) {
  void* offload = nullptr;
  return calls_->common.accept(listener, connection, &offload);
}

NetResult NetDriver::isend(void* connection, const void* data, std::size_t size, int tag,
                           void** request) {
  return calls_->common.isend(connection, const_cast<void*>(data), size, tag, nullptr, nullptr,
                              request);
}

NetResult NetDriver::irecv(void* connection, std::span<void* const> data,
                           std::span<const std::size_t> sizes, std::span<const int> tags,
                           void** request) {
  std::vector<void*> regions(data.size()), profiles(data.size());
  std::vector<void*> buffers(data.begin(), data.end());
  std::vector<std::size_t> capacities(sizes.begin(), sizes.end());
  std::vector<int> names(tags.begin(), tags.end());
  return calls_->common.irecv(connection, static_cast<int>(data.size()), buffers.data(),
                              capacities.data(), names.data(), regions.data(), profiles.data(),
                              request);
}

NetResult NetDriver::test(void* request, int* done, int* sizes) {
  return calls_->common.test(request, done, sizes);
}

NetResult NetDriver::regMr(void* connection, void* data, std::size_t size, int type,
                           void** region) {
  return calls_->common.regMr(connection, data, size, type, region);
}

NetResult NetDriver::deregMr(void* connection, void* region) {
  return calls_->common.deregMr(connection, region);
}

NetResult NetDriver::setNetAttr() {
  if (calls_->version == 10) return NetResult::kSuccess;
  return calls_->version == 11 ? calls_->v11().setNetAttr(calls_->context, nullptr)
                               : calls_->v12().setNetAttr(calls_->context, nullptr);
}

std::vector<std::string> NetDriver::missing() const {
  std::vector<std::string> names;
  const auto look = [&](const auto& calls) {
    if (calls.regMrDmaBuf == nullptr) names.emplace_back("regMrDmaBuf");
    if (calls.getDeviceMr == nullptr) names.emplace_back("getDeviceMr");
    if (calls.irecvConsumed == nullptr) names.emplace_back("irecvConsumed");
    if (calls.makeVDevice == nullptr) names.emplace_back("makeVDevice");
  };
  if (calls_->version == 12) {
    look(calls_->v12().calls);
  } else {
    look(calls_->common);
  }
  return names;
}

NetResult NetDriver::iflush(void* connection, void* data, int size, void** request) {
  void* region = nullptr;
  return calls_->common.iflush(connection, 1, &data, &size, &region, request);
}

NetResult NetDriver::closeSend(void* connection) { return calls_->common.closeSend(connection); }
NetResult NetDriver::closeRecv(void* connection) { return calls_->common.closeRecv(connection); }
NetResult NetDriver::closeListen(void* listener) { return calls_->common.closeListen(listener); }

std::vector<std::string> NetDriver::warnings() {
  const std::lock_guard lock(logMutex);
  return logged(nccl::NetLogLevel::kWarn);
}

std::vector<std::string> NetDriver::informations() {
  const std::lock_guard lock(logMutex);
  return logged(nccl::NetLogLevel::kInfo);
}

Ends connectHere(NetDriver& net, int device, int rounds) {
  std::array<std::byte, nccl::kNetHandleBytes> handle;
  void* listener = nullptr;
  Ends ends;
  if (net.listen(device, handle.data(), &listener) != NetResult::kSuccess) return ends;
  for (int round = 0; round < rounds && (ends.send == nullptr || ends.receive == nullptr);
       ++round) {
    if (ends.send == nullptr &&
        net.connect(device, handle.data(), &ends.send) != NetResult::kSuccess) {
      break;
    }
    if (ends.receive == nullptr && net.accept(listener, &ends.receive) != NetResult::kSuccess) {
      break;
    }
  }
  (void)net.closeListen(listener);
  return ends;
}

}  // namespace faultline::test
