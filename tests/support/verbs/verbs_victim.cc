// Posts and polls over queue pairs of fake devices until its stdin ends, and then tells what it got
// as one line of JSON. An error of any kind does not end it; with a second argument the first one
// does, at once and without a word.
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

namespace {

bool inputEnded() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  return ::poll(&input, 1, 0) > 0 && ::read(STDIN_FILENO, &byte, 1) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 2;
  const bool fails = argc > 2;
  ibv_device** const devices = ibv_get_device_list(nullptr);
  ibv_context* const context = ibv_open_device(devices[0]);
  ibv_pd* const pd = ibv_alloc_pd(context);
  ibv_cq* const cq = ibv_create_cq(context, 64, nullptr, nullptr, 0);
  std::vector<ibv_qp*> queue_pairs;
  for (int i = 0; i < count; ++i) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap.max_send_wr = 16;
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    queue_pairs.push_back(ibv_create_qp(pd, &init));
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.dest_qp_num = static_cast<std::uint32_t>(1000 + i);
    ibv_modify_qp(queue_pairs.back(), &attributes, IBV_QP_STATE | IBV_QP_DEST_QPN);
  }
  std::printf("ready\n");
  std::fflush(stdout);

  constexpr int kWindow = 8;
  std::vector<int> outstanding(queue_pairs.size());
  long posted = 0;
  long refused = 0;
  std::map<int, long> statuses;
  for (long round = 0; round % 256 != 0 || !inputEnded(); ++round) {
    for (std::size_t i = 0; i < queue_pairs.size(); ++i) {
      if (outstanding[i] >= kWindow) continue;
      ibv_sge data{0, 4096, 0};
      ibv_send_wr request{};
      request.wr_id = i;
      request.sg_list = &data;
      request.num_sge = 1;
      request.opcode = IBV_WR_RDMA_WRITE;
      ibv_send_wr* bad = nullptr;
      if (ibv_post_send(queue_pairs[i], &request, &bad) == 0) {
        ++posted;
        ++outstanding[i];
      } else {
        ++refused;
      }
    }
    ibv_wc completions[16];
    const int got = ibv_poll_cq(cq, 16, completions);
    for (int i = 0; i < got; ++i) {
      --outstanding[completions[i].wr_id];
      ++statuses[completions[i].status];
      if (fails && completions[i].status != IBV_WC_SUCCESS) return 1;
    }
    ::usleep(20);
  }
  std::printf("{\"posted\": %ld, \"refused\": %ld, \"statuses\": {", posted, refused);
  const char* separator = "";
  for (const auto& [status, times] : statuses) {
    std::printf("%s\"%d\": %ld", separator, status, times);
    separator = ", ";
  }
  std::printf("}}\n");
  for (ibv_qp* const qp : queue_pairs) ibv_destroy_qp(qp);
  ibv_destroy_cq(cq);
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
  ibv_free_device_list(devices);
  return 0;
}
