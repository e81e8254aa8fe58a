#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/json_fields.h"
#include "wire/message.h"

/// Of a laboratory of guests: between the controller and a guest that boots
/// (site/rdma_vm/guest_agent.h), and the machine room (machine_room.h). A guest that is ready is a
/// node with an agent: agent.h.
namespace faultline::wire {

// --- a guest that boots ---

/// What a guest is told about itself. The first message.
struct GuestSetup {
  static constexpr const char* kType = "setup";
  int version = kAgentVersion;
  int host = 0;
  int nics = 0;
  std::uint32_t mtu = 0;  ///< of the rails
};

using ToGuest = std::variant<GuestSetup>;

/// All that the setup asks for is done.
struct GuestReady {
  static constexpr const char* kType = "ready";
  std::string kernel{};  ///< "6.1.0-56-amd64"
};

/// It cannot be done, and the guest switches itself off.
struct GuestError {
  static constexpr const char* kType = "error";
  std::string message{};
};

using FromGuest = std::variant<GuestReady, GuestError>;

// --- the machine room ---

/// What to start. The first message.
struct RoomJob {
  static constexpr const char* kType = "job";
  int version = kAgentVersion;
  int nics = 0;                                    ///< of each guest
  std::string executable{};                        ///< qemu
  std::vector<std::vector<std::string>> guests{};  ///< its arguments, by host
};

using ToRoom = std::variant<RoomJob>;

/// All guests run.
struct RoomStarted {
  static constexpr const char* kType = "started";
};

/// A guest has ended.
struct GuestGone {
  static constexpr const char* kType = "gone";
  int host = 0;
  std::string message{};
};

/// The room cannot do its work, and ends.
struct RoomError {
  static constexpr const char* kType = "error";
  std::string message{};
};

using FromRoom = std::variant<RoomStarted, GuestGone, RoomError>;

// --- fields ---

template <typename V>
void visitFields(V& v, Of<GuestSetup> auto& setup) {
  v.required("version", setup.version);
  v.required("host", setup.host);
  v.required("nics", setup.nics);
  v.required("mtu", setup.mtu);
}

template <typename V>
void visitFields(V& v, Of<GuestReady> auto& message) {
  v.required("kernel", message.kernel);
}

template <typename V>
void visitFields(V& v, Of<GuestError> auto& message) {
  v.required("message", message.message);
}

template <typename V>
void visitFields(V& v, Of<RoomJob> auto& job) {
  v.required("version", job.version);
  v.required("nics", job.nics);
  v.required("executable", job.executable);
  v.required("guests", job.guests);
}

template <typename V>
void visitFields(V& /*v*/, Of<RoomStarted> auto& /*message*/) {}

template <typename V>
void visitFields(V& v, Of<GuestGone> auto& message) {
  v.required("host", message.host);
  v.required("message", message.message);
}

template <typename V>
void visitFields(V& v, Of<RoomError> auto& message) {
  v.required("message", message.message);
}

}  // namespace faultline::wire
