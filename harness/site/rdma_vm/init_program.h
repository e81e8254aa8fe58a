#pragma once

#include <string_view>

namespace faultline::rdma_vm {

/// The bytes of init/init.cc, built for a guest: an executable that needs no libraries. Empty where
/// the compiler's static C library is missing, and then there is no laboratory.
std::string_view initProgram();

}  // namespace faultline::rdma_vm
