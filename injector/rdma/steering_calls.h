#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/status.h"

struct ibv_context;
struct ibv_device;
struct ibv_flow;
struct mlx5dv_context_attr;
struct mlx5dv_devx_obj;
struct mlx5dv_flow_action_attr;
struct mlx5dv_flow_match_parameters;
struct mlx5dv_flow_matcher;
struct mlx5dv_flow_matcher_attr;

namespace faultline::rdma {

/// What steering rules need of libibverbs and libmlx5, by the names and with the meanings that it
/// has there (verbs.h, mlx5dv.h). Nothing of ours links to these libraries; tests put in a fake.
struct SteeringCalls {
  std::function<ibv_device**(int*)> get_device_list;
  std::function<void(ibv_device**)> free_device_list;
  std::function<const char*(ibv_device*)> get_device_name;
  std::function<bool(ibv_device*)> is_supported;
  std::function<ibv_context*(ibv_device*, mlx5dv_context_attr*)> open_device;
  std::function<int(ibv_context*)> close_device;
  std::function<int(ibv_context*, const void*, std::size_t, void*, std::size_t)> devx_general_cmd;
  std::function<mlx5dv_devx_obj*(ibv_context*, const void*, std::size_t, void*, std::size_t)>
      devx_obj_create;
  std::function<int(mlx5dv_devx_obj*)> devx_obj_destroy;
  std::function<mlx5dv_flow_matcher*(ibv_context*, mlx5dv_flow_matcher_attr*)> create_flow_matcher;
  std::function<int(mlx5dv_flow_matcher*)> destroy_flow_matcher;
  std::function<ibv_flow*(mlx5dv_flow_matcher*, mlx5dv_flow_match_parameters*, std::size_t,
                          mlx5dv_flow_action_attr*)>
      create_flow;
  std::function<int(ibv_flow*)> destroy_flow;
};

/// Where they are.
struct SteeringLibraries {
  std::string verbs = "libibverbs.so.1";
  std::string mlx5 = "libmlx5.so.1";
};

/// Loads the libraries, which stay until the process ends. kUnsupported, with what to install, when
/// one of them or a function of theirs is missing.
Result<SteeringCalls> loadSteeringCalls(const SteeringLibraries& libraries = {});

}  // namespace faultline::rdma
