#include "injector/rdma/steering_drop.h"

#include <infiniband/mlx5dv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "base/text.h"

namespace faultline::rdma {
namespace {

// A mask without a bit, which all packets match. As long as the headers that even old kernels know.
constexpr std::size_t kMatchBytes = 0x180;

/// mlx5dv_flow_match_parameters, which has no size of its own.
class MatchAll {
 public:
  MatchAll() { get()->match_sz = kMatchBytes; }
  mlx5dv_flow_match_parameters* get() {
    return reinterpret_cast<mlx5dv_flow_match_parameters*>(words_.data());
  }

 private:
  static constexpr std::size_t kHead = offsetof(mlx5dv_flow_match_parameters, match_buf);
  static_assert(kHead % sizeof(std::uint64_t) == 0);
  std::array<std::uint64_t, (kHead + kMatchBytes) / sizeof(std::uint64_t)> words_{};
};

// "The firmware does not know this command", among its verdicts.
constexpr std::uint8_t kBadOperation = 0x02;

bool saysMissing(int error, FirmwareVerdict verdict) {
  if (verdict.status != 0) return verdict.status == kBadOperation;
  // What is asked for is always the same: invalid it is to a kernel that does not know it yet.
  return error == EOPNOTSUPP || error == EPROTONOSUPPORT || error == ENOTTY || error == ENOSYS ||
         error == EINVAL;
}

}  // namespace

SteeringDrop::SteeringDrop(SteeringCalls calls, std::string device)
    : calls_(std::move(calls)), device_(std::move(device)) {}

SteeringDrop::~SteeringDrop() { takeBackAll(); }

Status SteeringDrop::refused(int error, std::string_view attempt, FirmwareVerdict verdict) const {
  Status status =
      Status::fromErrno(error, fmt::format("steering rule of {}: {}", device_, attempt));
  std::string message = status.message();
  if (verdict.status != 0) {
    message += fmt::format(" (firmware: status {:#04x}, syndrome {:#010x})", verdict.status,
                           verdict.syndrome);
  }
  if (status.code() == Code::kPermissionDenied) {
    return Status(status.code(), message +
                                     "; it needs CAP_NET_RAW (of the machine, not of a container "
                                     "with users of its own) and /dev/infiniband/uverbs*");
  }
  if (!saysMissing(error, verdict)) return Status(status.code(), message);
  return Status(Code::kUnsupported,
                message +
                    "; firmware, kernel or rdma-core is too old for it, or this is a function of "
                    "SR-IOV: take the device of the whole port, or drop packets in the switch");
}

Result<ibv_device*> SteeringDrop::findDevice(std::span<ibv_device*> devices) {
  std::vector<std::string_view> names;
  for (ibv_device* const device : devices) {
    const char* const name = calls_.get_device_name(device);
    if (name == nullptr) continue;
    if (name == device_) return device;
    names.emplace_back(name);
  }
  return errorf(Code::kNotFound, "steering rule of {}: libibverbs has no such device{}", device_,
                names.empty() ? std::string(": it has none") : suggestion(device_, names));
}

Status SteeringDrop::openContext() {
  int count = 0;
  ibv_device** const list = calls_.get_device_list(&count);
  if (list == nullptr) return refused(errno, "list the devices of libibverbs");
  const Status opened = [&]() -> Status {
    ASSIGN_OR_RETURN(ibv_device* const device,
                     findDevice(std::span(list, static_cast<std::size_t>(std::max(count, 0)))));
    if (!calls_.is_supported(device)) {
      return errorf(Code::kUnsupported,
                    "steering rule of {}: libmlx5 does not take it for a device of mlx5", device_);
    }
    mlx5dv_context_attr attributes{};
    attributes.flags = MLX5DV_CONTEXT_FLAGS_DEVX;
    context_ = calls_.open_device(device, &attributes);
    return context_ == nullptr ? refused(errno, "open it for commands to the firmware (DEVX)")
                               : okStatus();
  }();
  calls_.free_device_list(list);
  if (opened.ok()) {
    made_.push_back({"verbs context", [this] { return calls_.close_device(context_); }});
  }
  return opened;
}

Result<FlowTableCapabilities> SteeringDrop::requireTables(SteeringWays ways) {
  const SteeringCommand command = askFlowTableCapabilities();
  std::vector<std::uint8_t> answer(kFlowTableCapabilityBytes);
  const int error = calls_.devx_general_cmd(context_, command.data(), command.size(), answer.data(),
                                            answer.size());
  if (error != 0) return refused(error, "ask what flow tables it has", parseVerdict(answer));
  const FlowTableCapabilities tables = parseFlowTableCapabilities(answer);
  const bool receive = tables.receive && tables.receive_levels > 0;
  if ((!ways.out || tables.transmit) && (!ways.in || receive)) return tables;
  return errorf(Code::kUnsupported,
                "steering rule of {}: its firmware has flow tables for RDMA that is {}; drop "
                "packets in the switch",
                device_,
                receive           ? "received, and none for what is sent ('direction: in')"
                : tables.transmit ? "sent, and none for what is received ('direction: out')"
                                  : "neither sent nor received");
}

Result<SteeringDrop::FirmwareObject> SteeringDrop::makeObject(const SteeringCommand& command,
                                                              std::string name) {
  std::array<std::uint8_t, kSteeringAnswerBytes> answer{};
  mlx5dv_devx_obj* const object = calls_.devx_obj_create(context_, command.data(), command.size(),
                                                         answer.data(), answer.size());
  const int error = errno;
  if (object == nullptr) return refused(error, "make the " + name, parseVerdict(answer));
  made_.push_back({std::move(name), [this, object] { return calls_.devx_obj_destroy(object); }});
  return FirmwareObject{object, parseNumber(answer)};
}

Result<mlx5dv_devx_obj*> SteeringDrop::makeDropTable(std::uint8_t level) {
  ASSIGN_OR_RETURN(const FirmwareObject table,
                   makeObject(createReceiveTable(level), "table that drops"));
  ASSIGN_OR_RETURN(const FirmwareObject group,
                   makeObject(createGroup(table.number), "table's group"));
  RETURN_IF_ERROR(
      makeObject(createDropEntry(table.number, group.number), "table's entry").status());
  return table.object;
}

Status SteeringDrop::addWay(std::string name, int table_type, mlx5dv_devx_obj* table) {
  MatchAll mask;
  mlx5dv_flow_matcher_attr attributes{};
  attributes.type = IBV_FLOW_ATTR_NORMAL;
  attributes.match_mask = mask.get();
  attributes.comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE;
  attributes.ft_type = static_cast<mlx5dv_flow_table_type>(table_type);
  mlx5dv_flow_matcher* const matcher = calls_.create_flow_matcher(context_, &attributes);
  const int error = errno;
  if (matcher == nullptr) return refused(error, "make a matcher for " + name);
  made_.push_back(
      {"matcher for " + name, [this, matcher] { return calls_.destroy_flow_matcher(matcher); }});
  ways_.push_back({std::move(name), matcher, table});
  return okStatus();
}

Status SteeringDrop::make(SteeringWays ways) {
  RETURN_IF_ERROR(openContext());
  ASSIGN_OR_RETURN(const FlowTableCapabilities tables, requireTables(ways));
  if (ways.out) RETURN_IF_ERROR(addWay("RDMA_TX", MLX5DV_FLOW_TABLE_TYPE_RDMA_TX, nullptr));
  if (!ways.in) return okStatus();
  // The last level: every table of the kernel's may lead to it.
  const auto level = static_cast<std::uint8_t>(tables.receive_levels - 1);
  ASSIGN_OR_RETURN(mlx5dv_devx_obj* const table, makeDropTable(level));
  return addWay("RDMA_RX", MLX5DV_FLOW_TABLE_TYPE_RDMA_RX, table);
}

Status SteeringDrop::prepare(SteeringWays ways) {
  Status status = make(ways);
  if (!status.ok()) takeBackAll();
  return status;
}

Status SteeringDrop::addRule(const Way& way) {
  MatchAll value;
  mlx5dv_flow_action_attr action{};
  action.type = MLX5DV_FLOW_ACTION_DROP;
  if (way.table != nullptr) {
    action.type = MLX5DV_FLOW_ACTION_DEST_DEVX;
    action.obj = way.table;
  }
  ibv_flow* const rule = calls_.create_flow(way.matcher, value.get(), 1, &action);
  const int error = errno;
  if (rule == nullptr) return refused(error, "put the rule into " + way.name);
  rules_.push_back({"rule in " + way.name, [this, rule] { return calls_.destroy_flow(rule); }});
  return okStatus();
}

Status SteeringDrop::install() {
  for (const Way& way : ways_) {
    const Status status = addRule(way);
    if (status.ok()) continue;
    const Status removed = remove();
    return removed.ok() ? status : removed.withContext(status.message());
  }
  return okStatus();
}

Status SteeringDrop::remove() {
  while (!rules_.empty()) {
    const int error = rules_.back().destroy();
    if (error != 0) {
      return Status(Code::kNotRestored,
                    refused(error, "take back the " + rules_.back().name).message());
    }
    rules_.pop_back();
  }
  return okStatus();
}

/// What cannot be destroyed the kernel takes back with the context, which is the last.
void SteeringDrop::takeBackAll() {
  for (std::vector<Made>* const made : {&rules_, &made_}) {
    for (; !made->empty(); made->pop_back()) made->back().destroy();
  }
  ways_.clear();
  context_ = nullptr;
}

}  // namespace faultline::rdma
