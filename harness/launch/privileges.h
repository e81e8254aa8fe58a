#pragma once

#include "base/status.h"

namespace faultline::launch {

/// Where the right to make namespaces and links comes from.
enum class Privileges {
  kRoot,           ///< CAP_SYS_ADMIN and CAP_NET_ADMIN were there
  kUserNamespace,  ///< we are root of a user namespace of our own
};

/// What the machine says about user namespaces, to explain a refusal.
struct UserNamespaceFacts {
  bool apparmor_restricts = false;     ///< kernel.apparmor_restrict_unprivileged_userns = 1
  bool unprivileged_disabled = false;  ///< kernel.unprivileged_userns_clone = 0 (Debian's kernels)
  bool limit_is_zero = false;          ///< user.max_user_namespaces = 0
};

UserNamespaceFacts readUserNamespaceFacts();

/// What a refusal (errno) means and what the user can do. kPermissionDenied, or kUnsupported when
/// the kernel cannot do it at all. Pure.
Status explainUserNamespaceRefusal(int error, const UserNamespaceFacts& facts);

/// Makes sure that this process may make namespaces and links: does nothing for root, else enters
/// a user namespace of its own (as its root, with the caller's user and group mapped) and a network
/// namespace with it, since the original one cannot be re-entered from there. Once per process,
/// before it has threads; there is no way back, and children inherit it.
Result<Privileges> enterPrivileges();

/// Whether enterPrivileges() would leave the network that this process is in. Changes nothing.
bool wouldLeaveNetwork();

/// The same without looking whether it is necessary.
Status enterUserNamespace();

}  // namespace faultline::launch
