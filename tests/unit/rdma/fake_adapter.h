#pragma once

#include <gtest/gtest.h>
#include <infiniband/mlx5dv.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "injector/rdma/steering_calls.h"

namespace faultline::rdma::test {

/// An mlx5 adapter behind the calls of libibverbs and libmlx5: notes what it is asked for, counts
/// what is alive, and behaves as the kernel does where order matters: what is in use cannot be
/// destroyed, and what is left goes with the context.
class FakeAdapter {
 public:
  static constexpr std::uint32_t kTableNumber = 0x00bcde;
  static constexpr std::uint32_t kGroupNumber = 0x777701;

  // What it is to do.
  int fail_at = 0;  ///< this one of the calls that can fail does, counted from 1; 0: none
  int error = EIO;
  std::uint8_t firmware_status = 0;  ///< what the firmware says then
  std::uint32_t firmware_syndrome = 0;
  std::set<std::string> stuck;  ///< cannot be destroyed
  bool is_mlx5 = true;
  bool has_receive_tables = true;
  bool has_transmit_tables = true;
  std::uint8_t levels = 64;

  // What has happened.
  int calls_that_can_fail = 0;
  std::vector<std::string> log;  ///< "+table", "-table", ...
  std::vector<std::vector<std::uint8_t>> commands;
  std::vector<std::uint32_t> matched_tables;
  int swept = 0;  ///< what the context still had when it was closed
  int lists = 0;  ///< of devices, not freed

  std::size_t alive() const { return live_.size(); }
  std::size_t alive(std::string_view kind) const {
    std::size_t count = 0;
    for (const auto& [handle, object] : live_) count += object.kind == kind ? 1 : 0;
    return count;
  }

  SteeringCalls calls() {
    SteeringCalls calls;
    calls.get_device_list = [this](int* count) -> ibv_device** {
      if (fails()) return nullptr;
      ++lists;
      *count = 2;
      return devices_.data();
    };
    calls.free_device_list = [this](ibv_device** list) {
      EXPECT_EQ(list, devices_.data());
      --lists;
    };
    calls.get_device_name = [this](ibv_device* device) {
      EXPECT_EQ(lists, 1) << "after it was freed";
      return device == devices_[0] ? "mlx5_0" : "mlx5_1";
    };
    calls.is_supported = [this](ibv_device*) { return is_mlx5; };
    calls.open_device = [this](ibv_device* device, mlx5dv_context_attr* attributes) {
      EXPECT_EQ(lists, 1) << "after it was freed";
      EXPECT_EQ(device, devices_[1]);
      EXPECT_EQ(attributes->flags, std::uint32_t{MLX5DV_CONTEXT_FLAGS_DEVX});
      EXPECT_EQ(attributes->comp_mask, 0u);
      return static_cast<ibv_context*>(make("context", {}));
    };
    calls.close_device = [this](ibv_context* context) {
      EXPECT_EQ(live_.count(context), 1u) << "closed twice";
      log.emplace_back("-context");
      swept += static_cast<int>(live_.size()) - 1;
      live_.clear();
      return 0;
    };
    calls.devx_general_cmd = [this](ibv_context* context, const void* in, std::size_t in_size,
                                    void* out, std::size_t out_size) {
      EXPECT_EQ(live_.count(context), 1u);
      noteCommand(in, in_size);
      if (fails()) return answerError(out), error;
      EXPECT_GE(out_size, 400u);
      auto* const answer = static_cast<std::uint8_t*>(out);
      if (has_receive_tables) answer[144] = 0x80;
      answer[151] = levels;
      if (has_transmit_tables) answer[336] = 0x80;
      return 0;
    };
    calls.devx_obj_create = [this](ibv_context* context, const void* in, std::size_t in_size,
                                   void* out, std::size_t out_size) -> mlx5dv_devx_obj* {
      EXPECT_EQ(live_.count(context), 1u);
      EXPECT_EQ(out_size, 16u);
      return static_cast<mlx5dv_devx_obj*>(makeObject(in, in_size, out));
    };
    calls.devx_obj_destroy = [this](mlx5dv_devx_obj* object) { return destroy(object); };
    calls.create_flow_matcher = [this](ibv_context* context, mlx5dv_flow_matcher_attr* attributes) {
      EXPECT_EQ(live_.count(context), 1u);
      EXPECT_EQ(attributes->type, IBV_FLOW_ATTR_NORMAL);
      EXPECT_EQ(attributes->flags, 0u) << "the kernel refuses them beside a table's type";
      EXPECT_EQ(attributes->priority, 0u);
      EXPECT_EQ(attributes->match_criteria_enable, 0u);
      EXPECT_EQ(attributes->comp_mask, std::uint64_t{MLX5DV_FLOW_MATCHER_MASK_FT_TYPE});
      expectMatchesAll(attributes->match_mask);
      void* const matcher = make("matcher", {});
      if (matcher != nullptr) {
        live_[matcher].table_type = attributes->ft_type;
        matched_tables.push_back(attributes->ft_type);
      }
      return static_cast<mlx5dv_flow_matcher*>(matcher);
    };
    calls.destroy_flow_matcher = [this](mlx5dv_flow_matcher* matcher) { return destroy(matcher); };
    calls.create_flow = [this](mlx5dv_flow_matcher* matcher, mlx5dv_flow_match_parameters* value,
                               std::size_t count, mlx5dv_flow_action_attr* action) {
      EXPECT_EQ(count, 1u);
      EXPECT_EQ(live_.count(matcher), 1u);
      expectMatchesAll(value);
      std::set<void*> uses{matcher};
      if (live_[matcher].table_type == MLX5DV_FLOW_TABLE_TYPE_RDMA_RX) {
        EXPECT_EQ(action->type, MLX5DV_FLOW_ACTION_DEST_DEVX) << "all else the kernel refuses";
        EXPECT_EQ(live_[action->obj].kind, "table");
        EXPECT_EQ(alive("entry"), 1u) << "before the table drops";
        uses.insert(action->obj);
      } else {
        EXPECT_EQ(action->type, MLX5DV_FLOW_ACTION_DROP);
      }
      return static_cast<ibv_flow*>(make("rule", std::move(uses)));
    };
    calls.destroy_flow = [this](ibv_flow* rule) { return destroy(rule); };
    return calls;
  }

 private:
  struct Object {
    std::string kind;
    std::set<void*> uses;
    std::uint32_t table_type = 0;
  };

  bool fails() {
    if (++calls_that_can_fail != fail_at) return false;
    errno = error;
    return true;
  }
  void answerError(void* out) const {
    auto* const answer = static_cast<std::uint8_t*>(out);
    answer[0] = firmware_status;
    for (int i = 0; i < 4; ++i) {
      answer[4 + i] = static_cast<std::uint8_t>(firmware_syndrome >> (24 - 8 * i));
    }
  }
  void noteCommand(const void* in, std::size_t size) {
    const auto* const bytes = static_cast<const std::uint8_t*>(in);
    commands.emplace_back(bytes, bytes + size);
  }
  void* make(const std::string& kind, std::set<void*> uses) {
    if (fails()) return nullptr;
    handles_.push_back(std::make_unique<char>());
    void* const handle = handles_.back().get();
    live_[handle] = {kind, std::move(uses)};
    log.push_back("+" + kind);
    return handle;
  }
  void* only(const std::string& kind) {
    for (const auto& [handle, object] : live_) {
      if (object.kind == kind) return handle;
    }
    ADD_FAILURE() << "there is no " << kind << " yet";
    return nullptr;
  }
  void* makeObject(const void* in, std::size_t size, void* out) {
    noteCommand(in, size);
    auto* const answer = static_cast<std::uint8_t*>(out);
    const auto& command = commands.back();
    void* made = nullptr;
    std::uint32_t number = 0;
    switch (command[0] << 8 | command[1]) {
      case 0x930:
        made = make("table", {});
        number = kTableNumber;
        break;
      case 0x933:
        made = make("group", {only("table")});
        number = kGroupNumber;
        break;
      case 0x936:
        made = make("entry", {only("table"), only("group")});
        break;
      default:
        ADD_FAILURE() << "an unknown command";
    }
    if (made == nullptr) {
      answerError(out);
      errno = error;
      return nullptr;
    }
    answer[8] = 0xee;  // a part of an address, not of the number
    for (int i = 0; i < 3; ++i) answer[9 + i] = static_cast<std::uint8_t>(number >> (16 - 8 * i));
    return made;
  }
  int destroy(void* handle) {
    const auto found = live_.find(handle);
    if (found == live_.end()) {
      ADD_FAILURE() << "destroyed twice";
      return EINVAL;
    }
    const std::string kind = found->second.kind;
    if (stuck.contains(kind)) return EBUSY;
    for (const auto& [other, object] : live_) {
      if (!object.uses.contains(handle)) continue;
      EXPECT_FALSE(stuck.empty()) << kind << " is in use by " << object.kind;
      return EBUSY;
    }
    live_.erase(found);
    log.push_back("-" + kind);
    return 0;
  }
  static void expectMatchesAll(const mlx5dv_flow_match_parameters* match) {
    EXPECT_EQ(match->match_sz, 0x180u);
    for (std::size_t i = 0; i < 0x180 / 8; ++i) EXPECT_EQ(match->match_buf[i], 0u) << i;
  }

  std::array<char, 2> device_storage_{};
  std::array<ibv_device*, 2> devices_{reinterpret_cast<ibv_device*>(&device_storage_[0]),
                                      reinterpret_cast<ibv_device*>(&device_storage_[1])};
  std::vector<std::unique_ptr<char>> handles_;
  std::map<void*, Object> live_;
};

}  // namespace faultline::rdma::test
