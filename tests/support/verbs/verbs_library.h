#pragma once

#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <cstdio>
#include <cstdlib>

#include "tests/support/verbs/fake_ibverbs.h"

namespace faultline::testing {

/// The shim in front of the fake, loaded and looked up as NCCL does it: dlopen, dlvsym.
struct VerbsLibrary {
  void* handle = nullptr;
  decltype(&::ibv_open_device) openDevice = nullptr;
  decltype(&::ibv_close_device) closeDevice = nullptr;
  decltype(&::ibv_alloc_pd) allocPd = nullptr;
  decltype(&::ibv_dealloc_pd) deallocPd = nullptr;
  decltype(&::ibv_create_comp_channel) createChannel = nullptr;
  decltype(&::ibv_destroy_comp_channel) destroyChannel = nullptr;
  decltype(&::ibv_create_cq) createCq = nullptr;
  decltype(&::ibv_destroy_cq) destroyCq = nullptr;
  decltype(&::ibv_get_cq_event) getEvent = nullptr;
  decltype(&::ibv_ack_cq_events) ackEvents = nullptr;
  decltype(&::ibv_create_qp) createQp = nullptr;
  decltype(&::ibv_modify_qp) modifyQp = nullptr;
  decltype(&::ibv_query_qp) queryQp = nullptr;
  decltype(&::ibv_destroy_qp) destroyQp = nullptr;
  decltype(&::ibv_qp_to_qp_ex) toExtended = nullptr;
  decltype(&::ibv_import_device) importDevice = nullptr;
  ibv_device** (*getDeviceList)(int*) = nullptr;
  void (*freeDeviceList)(ibv_device**) = nullptr;

  /// Loads `path`; ends the program when it lacks something.
  static VerbsLibrary load(const char* path) {
    VerbsLibrary library;
    library.handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library.handle == nullptr) {
      std::fprintf(stderr, "%s\n", ::dlerror());
      std::abort();
    }
    const auto find = [&](auto& function, const char* name, const char* version) {
      void* const found = ::dlvsym(library.handle, name, version);
      if (found == nullptr) {
        std::fprintf(stderr, "%s lacks %s@%s\n", path, name, version);
        std::abort();
      }
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    };
    find(library.openDevice, "ibv_open_device", "IBVERBS_1.1");
    find(library.closeDevice, "ibv_close_device", "IBVERBS_1.1");
    find(library.allocPd, "ibv_alloc_pd", "IBVERBS_1.1");
    find(library.deallocPd, "ibv_dealloc_pd", "IBVERBS_1.1");
    find(library.createChannel, "ibv_create_comp_channel", "IBVERBS_1.0");
    find(library.destroyChannel, "ibv_destroy_comp_channel", "IBVERBS_1.0");
    find(library.createCq, "ibv_create_cq", "IBVERBS_1.1");
    find(library.destroyCq, "ibv_destroy_cq", "IBVERBS_1.1");
    find(library.getEvent, "ibv_get_cq_event", "IBVERBS_1.1");
    find(library.ackEvents, "ibv_ack_cq_events", "IBVERBS_1.1");
    find(library.createQp, "ibv_create_qp", "IBVERBS_1.1");
    find(library.modifyQp, "ibv_modify_qp", "IBVERBS_1.1");
    find(library.queryQp, "ibv_query_qp", "IBVERBS_1.1");
    find(library.destroyQp, "ibv_destroy_qp", "IBVERBS_1.1");
    find(library.toExtended, "ibv_qp_to_qp_ex", "IBVERBS_1.6");
    find(library.importDevice, "ibv_import_device", "IBVERBS_1.10");
    find(library.getDeviceList, "ibv_get_device_list", "IBVERBS_1.1");
    find(library.freeDeviceList, "ibv_free_device_list", "IBVERBS_1.1");
    return library;
  }
};

/// What the fake library at `path` can be asked to do.
inline const FakeControls& fakeControlsOf(const char* path) {
  void* const handle = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<GetFakeControls*>(::dlsym(handle, "fakeControls"))();
}

}  // namespace faultline::testing
