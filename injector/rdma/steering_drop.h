#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "injector/rdma/steering_calls.h"
#include "injector/rdma/steering_commands.h"

namespace faultline::rdma {

/// Which of a device's packets a rule is for.
struct SteeringWays {
  bool out = true;
  bool in = true;
};

/// Rules with the action "drop" in the steering tables of an mlx5 adapter, for all RDMA packets of
/// one device (which is one function of the adapter); what is not RDMA does not come by there. All
/// belongs to a verbs context of our own: when that is closed, or the process ends however it does,
/// the kernel takes it back.
///
/// What is sent is dropped by the rule itself (RDMA_TX). For what is received the kernel takes no
/// such rule, only one that leads to a table of ours (RDMA_RX), whose one entry drops.
///
/// Unproven on hardware. Not thread-safe.
class SteeringDrop {
 public:
  SteeringDrop(SteeringCalls calls, std::string device);
  ~SteeringDrop();
  SteeringDrop(const SteeringDrop&) = delete;
  SteeringDrop& operator=(const SteeringDrop&) = delete;

  /// Makes everything but the rules: nothing is dropped yet. kUnsupported where firmware, kernel or
  /// libraries cannot do it, kPermissionDenied without the right to; then nothing is left behind.
  Status prepare(SteeringWays ways);
  /// From now on packets vanish. Needs CAP_NET_RAW. After an error none do.
  Status install();
  /// From now on they do not, and install() may follow again. May be repeated after an error.
  Status remove();

 private:
  /// What was made, and how it is taken back.
  struct Made {
    std::string name;
    std::function<int()> destroy;  ///< an error number, or 0
  };
  struct Way {
    std::string name;
    mlx5dv_flow_matcher* matcher;
    mlx5dv_devx_obj* table;  ///< nullptr: the rule drops by itself
  };

  Status make(SteeringWays ways);
  Status openContext();
  Result<ibv_device*> findDevice(std::span<ibv_device*> devices);
  Result<FlowTableCapabilities> requireTables(SteeringWays ways);
  Result<mlx5dv_devx_obj*> makeDropTable(std::uint8_t level);
  struct FirmwareObject {
    mlx5dv_devx_obj* object;
    std::uint32_t number;
  };
  Result<FirmwareObject> makeObject(const SteeringCommand& command, std::string name);
  Status addWay(std::string name, int table_type, mlx5dv_devx_obj* table);
  Status addRule(const Way& way);
  /// An error with what can be done about it.
  Status refused(int error, std::string_view attempt, FirmwareVerdict verdict = {}) const;
  void takeBackAll();

  SteeringCalls calls_;
  std::string device_;
  ibv_context* context_ = nullptr;
  std::vector<Way> ways_;
  std::vector<Made> made_;   ///< in this order
  std::vector<Made> rules_;  ///< in this order, after all of them
};

}  // namespace faultline::rdma
