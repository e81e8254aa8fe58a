#include "injector/rdma/steering_calls.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>

namespace faultline::rdma {
namespace {

struct SharedLibrary {
  std::string name;
  void* handle;
};

Result<SharedLibrary> loadLibrary(const std::string& name, std::string_view package) {
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return SharedLibrary{name, handle};
  const char* const reason = ::dlerror();
  return errorf(Code::kUnsupported,
                "a steering rule needs {}, which cannot be loaded ({}); install {} (Debian, "
                "Ubuntu), or rdma-core",
                name, reason == nullptr ? "no reason given" : reason, package);
}

template <typename Answer, typename... Arguments>
Status bindCall(const SharedLibrary& library, const char* name,
                std::function<Answer(Arguments...)>& function) {
  void* const symbol = ::dlsym(library.handle, name);
  if (symbol == nullptr) {
    return errorf(Code::kUnsupported,
                  "a steering rule needs {}, which {} does not have; rdma-core 27 and later do",
                  name, library.name);
  }
  function = reinterpret_cast<Answer (*)(Arguments...)>(symbol);
  return okStatus();
}

}  // namespace

Result<SteeringCalls> loadSteeringCalls(const SteeringLibraries& libraries) {
  ASSIGN_OR_RETURN(const SharedLibrary verbs, loadLibrary(libraries.verbs, "libibverbs1"));
  ASSIGN_OR_RETURN(const SharedLibrary mlx5, loadLibrary(libraries.mlx5, "ibverbs-providers"));
  SteeringCalls calls;
  RETURN_IF_ERROR(bindCall(verbs, "ibv_get_device_list", calls.get_device_list));
  RETURN_IF_ERROR(bindCall(verbs, "ibv_free_device_list", calls.free_device_list));
  RETURN_IF_ERROR(bindCall(verbs, "ibv_get_device_name", calls.get_device_name));
  RETURN_IF_ERROR(bindCall(verbs, "ibv_close_device", calls.close_device));
  RETURN_IF_ERROR(bindCall(mlx5, "mlx5dv_is_supported", calls.is_supported));
  RETURN_IF_ERROR(bindCall(mlx5, "mlx5dv_open_device", calls.open_device));
  RETURN_IF_ERROR(bindCall(mlx5, "mlx5dv_devx_general_cmd", calls.devx_general_cmd));
  RETURN_IF_ERROR(bindCall(mlx5, "mlx5dv_devx_obj_create", calls.devx_obj_create));
  RETURN_IF_ERROR(bindCall(mlx5, "mlx5dv_devx_obj_destroy", calls.devx_obj_destroy));
  RETURN_IF_ERROR(bindCall(mlx5, "mlx5dv_create_flow_matcher", calls.create_flow_matcher));
  RETURN_IF_ERROR(bindCall(mlx5, "mlx5dv_destroy_flow_matcher", calls.destroy_flow_matcher));
  RETURN_IF_ERROR(bindCall(mlx5, "mlx5dv_create_flow", calls.create_flow));
  // No symbol: it is inline, and calls the driver through the context.
  calls.destroy_flow = [](ibv_flow* flow) { return ibv_destroy_flow(flow); };
  return calls;
}

}  // namespace faultline::rdma
