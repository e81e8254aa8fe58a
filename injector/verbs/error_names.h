#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

/// The names of the errors that can be injected, and their numbers: the one table of them, for what
/// a user may ask for (injector/faults/verbs_kinds.cc) and for what a rule may hold (rule.cc).
/// Pure.
namespace faultline::injector::verbs {

using NamedNumber = std::pair<std::string_view, int>;

/// Of `enum ibv_wc_status`, by the end of their names in small letters; the numbers are part of the
/// verbs ABI. Those that a reliable connection gives, and two that mean a broken device.
inline constexpr std::array<NamedNumber, 12> kStatuses{{
    {"retry_exc_err", 12},
    {"rnr_retry_exc_err", 13},
    {"wr_flush_err", 5},
    {"rem_access_err", 10},
    {"rem_inv_req_err", 9},
    {"rem_op_err", 11},
    {"loc_len_err", 1},
    {"loc_qp_op_err", 2},
    {"loc_prot_err", 4},
    {"fatal_err", 19},
    {"resp_timeout_err", 20},
    {"general_err", 21},
}};

/// Those that posting can return.
inline constexpr std::array<NamedNumber, 6> kErrnos{{
    {"ENOMEM", ENOMEM},
    {"EINVAL", EINVAL},
    {"EIO", EIO},
    {"EAGAIN", EAGAIN},
    {"EFAULT", EFAULT},
    {"ENODEV", ENODEV},
}};

template <std::size_t kCount>
constexpr std::array<std::string_view, kCount> namesOf(
    const std::array<NamedNumber, kCount>& table) {
  std::array<std::string_view, kCount> names;
  for (std::size_t i = 0; i < kCount; ++i) names[i] = table[i].first;
  return names;
}

}  // namespace faultline::injector::verbs
