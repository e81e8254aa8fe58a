#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace faultline::injector::verbs {

/// Which user somebody is inside of a user namespace (a rootless container), `outside` being who he
/// is out here. `map`: the text of /proc/<pid>/uid_map of a process inside, read from outside:
/// lines of "first inside, first outside, how many" (user_namespaces(7)). Nothing: it does not have
/// him. Pure.
std::optional<uid_t> userInside(std::string_view map, uid_t outside);

}  // namespace faultline::injector::verbs
