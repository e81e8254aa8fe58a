// What the shim hands on as it is. No verbs header here: a function that only passes on its
// arguments needs no type of them. On the machines that RDMA NICs are built into (x86-64, ARM64)
// they are in registers, and go on in the same registers.
#include <cerrno>

#include "injector/verbs/shim/real_library.h"
#include "injector/verbs/shim/untyped_call.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#error \
    "the verbs shim passes arguments on in registers: check the calling convention of this machine"
#endif

using faultline::injector::verbs::shim::Function;
using faultline::injector::verbs::shim::Word;

#define FAULTLINE_FORWARD(name, version, missing)                                           \
  extern "C" __attribute__((visibility("default"))) FAULTLINE_UNTYPED_CALL Word name(       \
      Word a, Word b, Word c, Word d, Word e, Word f) {                                     \
    static constinit faultline::injector::verbs::shim::Real<Function> real(#name, version); \
    if (Function* const function = real.get()) return function(a, b, c, d, e, f);           \
    errno = EOPNOTSUPP;                                                                     \
    return static_cast<Word>(missing);                                                      \
  }

// What a caller is told when the real library is too old to have the function: nullptr, an errno.
#define FAULTLINE_POINTER(name, version) FAULTLINE_FORWARD(name, version, 0)
#define FAULTLINE_STATUS(name, version) FAULTLINE_FORWARD(name, version, EOPNOTSUPP)

FAULTLINE_POINTER(ibv_create_comp_channel, "IBVERBS_1.0")
FAULTLINE_STATUS(ibv_destroy_comp_channel, "IBVERBS_1.0")
FAULTLINE_STATUS(ibv_rate_to_mult, "IBVERBS_1.0")
FAULTLINE_STATUS(mult_to_ibv_rate, "IBVERBS_1.0")
FAULTLINE_STATUS(ibv_copy_path_rec_from_kern, "IBVERBS_1.0")
FAULTLINE_STATUS(ibv_copy_path_rec_to_kern, "IBVERBS_1.0")
FAULTLINE_STATUS(ibv_copy_qp_attr_from_kern, "IBVERBS_1.0")
FAULTLINE_POINTER(ibv_get_sysfs_path, "IBVERBS_1.0")
FAULTLINE_FORWARD(ibv_read_sysfs_file, "IBVERBS_1.0", -1)

FAULTLINE_STATUS(ibv_ack_async_event, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_alloc_pd, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_attach_mcast, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_copy_ah_attr_from_kern, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_create_ah, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_create_ah_from_wc, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_create_srq, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_dealloc_pd, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_dereg_mr, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_destroy_ah, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_destroy_srq, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_detach_mcast, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_dofork_range, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_dontfork_range, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_event_type_str, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_fork_init, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_free_device_list, "IBVERBS_1.1")
FAULTLINE_FORWARD(ibv_get_async_event, "IBVERBS_1.1", -1)
FAULTLINE_POINTER(ibv_get_device_guid, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_get_device_list, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_get_device_name, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_init_ah_from_wc, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_modify_srq, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_node_type_str, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_port_state_str, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_query_device, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_query_gid, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_query_pkey, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_query_port, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_query_qp, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_query_srq, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_rate_to_mbps, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_reg_mr, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_rereg_mr, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_resize_cq, "IBVERBS_1.1")
FAULTLINE_STATUS(ibv_resolve_eth_l2_from_gid, "IBVERBS_1.1")
FAULTLINE_POINTER(ibv_wc_status_str, "IBVERBS_1.1")
FAULTLINE_STATUS(mbps_to_ibv_rate, "IBVERBS_1.1")

FAULTLINE_FORWARD(ibv_get_pkey_index, "IBVERBS_1.5", -1)
FAULTLINE_POINTER(ibv_qp_to_qp_ex, "IBVERBS_1.6")
FAULTLINE_POINTER(ibv_reg_mr_iova, "IBVERBS_1.7")
FAULTLINE_POINTER(ibv_reg_mr_iova2, "IBVERBS_1.8")
FAULTLINE_FORWARD(ibv_get_device_index, "IBVERBS_1.9", -1)
FAULTLINE_POINTER(ibv_import_mr, "IBVERBS_1.10")
FAULTLINE_POINTER(ibv_import_pd, "IBVERBS_1.10")
FAULTLINE_STATUS(ibv_query_ece, "IBVERBS_1.10")
FAULTLINE_STATUS(ibv_set_ece, "IBVERBS_1.10")
FAULTLINE_STATUS(ibv_unimport_mr, "IBVERBS_1.10")
FAULTLINE_STATUS(ibv_unimport_pd, "IBVERBS_1.10")
FAULTLINE_STATUS(_ibv_query_gid_ex, "IBVERBS_1.11")
FAULTLINE_FORWARD(_ibv_query_gid_table, "IBVERBS_1.11", -EOPNOTSUPP)
FAULTLINE_POINTER(ibv_reg_dmabuf_mr, "IBVERBS_1.12")
FAULTLINE_POINTER(ibv_import_dm, "IBVERBS_1.13")
FAULTLINE_STATUS(ibv_is_fork_initialized, "IBVERBS_1.13")
FAULTLINE_STATUS(ibv_unimport_dm, "IBVERBS_1.13")
FAULTLINE_FORWARD(ibv_query_qp_data_in_order, "IBVERBS_1.14", 0)
FAULTLINE_POINTER(ibv_alloc_dmah, "IBVERBS_1.15")
FAULTLINE_STATUS(ibv_dealloc_dmah, "IBVERBS_1.15")
FAULTLINE_POINTER(ibv_reg_mr_ex, "IBVERBS_1.15")
FAULTLINE_FORWARD(ibv_dm_export_dmabuf_fd, "IBVERBS_1.16", -1)
FAULTLINE_STATUS(ibv_query_port_speed, "IBVERBS_1.16")
