#include "injector/verbs/shim/queue_pair_facts.h"

#include <arpa/inet.h>

#include <array>

#include "injector/verbs/shim/real_library.h"

namespace faultline::injector::verbs::shim {
namespace {

constinit Real<int(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*)> g_query("ibv_query_qp",
                                                                           "IBVERBS_1.1");

}  // namespace

std::string typeName(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_RAW_PACKET:
      return "RAW";
    case IBV_QPT_XRC_SEND:
      return "XRC_SEND";
    case IBV_QPT_XRC_RECV:
      return "XRC_RECV";
    case IBV_QPT_DRIVER:
      return "DRIVER";
  }
  return "UNKNOWN";
}

std::string stateName(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      return "RESET";
    case IBV_QPS_INIT:
      return "INIT";
    case IBV_QPS_RTR:
      return "RTR";
    case IBV_QPS_RTS:
      return "RTS";
    case IBV_QPS_SQD:
      return "SQD";
    case IBV_QPS_SQE:
      return "SQE";
    case IBV_QPS_ERR:
      return "ERR";
    case IBV_QPS_UNKNOWN:
      break;
  }
  return "UNKNOWN";
}

bool query(ibv_qp& qp, ibv_qp_attr& attributes, int mask, ibv_qp_init_attr& init) {
  auto* const real = g_query.get();
  return real != nullptr && real(&qp, &attributes, mask, &init) == 0;
}

void update(QueuePairFacts& facts, const ibv_qp_attr& attributes, int mask) {
  if ((mask & IBV_QP_STATE) != 0) {
    facts.state = stateName(attributes.qp_state);
    if (attributes.qp_state == IBV_QPS_RESET) {
      facts.peerNumber = facts.peerLid = 0;
      facts.peerGid.clear();
    }
  }
  if ((mask & IBV_QP_DEST_QPN) != 0) facts.peerNumber = attributes.dest_qp_num;
  if ((mask & IBV_QP_AV) != 0) {
    facts.peerLid = attributes.ah_attr.dlid;
    std::array<char, INET6_ADDRSTRLEN> text{};
    const bool global = attributes.ah_attr.is_global != 0;
    facts.peerGid = global && ::inet_ntop(AF_INET6, attributes.ah_attr.grh.dgid.raw, text.data(),
                                          text.size()) != nullptr
                        ? text.data()
                        : "";
  }
}

}  // namespace faultline::injector::verbs::shim
