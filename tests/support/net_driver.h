#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "resilient_ccl/nccl/net_api.h"

namespace faultline::test {

using nccl::NetResult;

/// NCCL's side of the plugin: loads it and calls it as NCCL does, in one version of the interface.
class NetDriver {
 public:
  /// Loads the library and looks the version's symbol up; `error()` when there is none.
  NetDriver(const std::string& library, int version);
  /// Unloads it, as NCCL does with its last communicator.
  ~NetDriver();
  const std::string& error() const { return error_; }

  /// By which NCCL_NET chooses it.
  std::string name() const;
  NetResult init();
  NetResult finalize();  ///< success where the version has none
  int devices();
  /// What all versions have of a device's properties.
  struct Properties {
    std::string name, pciPath;
    int speed = 0, port = 0, pointers = 0, maxReceives = 0, maxConnections = 0;
    int registrationIsGlobal = 0, forceFlush = 0, deviceType = 0;
    int members = 0, firstMember = 0;
    float latency = 0;
    std::size_t maxPointToPoint = 0, maxCollective = 0;
    int maxMultiRequest = 0;        ///< 11, 12
    int railId = -2, planeId = -2;  ///< 12
  };
  /// Of a structure that is full of something else before.
  NetResult properties(int device, Properties& out);
  NetResult listen(int device, void* handle, void** listener);
  NetResult connect(int device, void* handle, void** connection);

  // As they are in all versions.
  NetResult accept(void* listener, void** connection);
  NetResult isend(void* connection, const void* data, std::size_t size, int tag, void** request);
  NetResult irecv(void* connection, std::span<void* const> data, std::span<const std::size_t> sizes,
                  std::span<const int> tags, void** request);
  NetResult test(void* request, int* done, int* sizes);
  NetResult regMr(void* connection, void* data, std::size_t size, int type, void** region);
  NetResult deregMr(void* connection, void* region);
  NetResult setNetAttr();  ///< success where the version has none
  /// The names of the calls that the plugin leaves out.
  std::vector<std::string> missing() const;
  NetResult iflush(void* connection, void* data, int size, void** request);
  NetResult closeSend(void* connection);
  NetResult closeRecv(void* connection);
  NetResult closeListen(void* listener);

  /// What the plugin has logged as warnings, and for information, in the whole process.
  static std::vector<std::string> warnings();
  static std::vector<std::string> informations();

 private:
  struct Calls;
  std::unique_ptr<Calls> calls_;
  std::string error_;
};

/// A connection both ends of which are in this process.
struct Ends {
  void* send = nullptr;
  void* receive = nullptr;
};
/// Takes turns at both ends until there is one; null ends after `rounds`.
Ends connectHere(NetDriver& net, int device = 0, int rounds = 1'000'000);

}  // namespace faultline::test
