#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <vector>

#include "injector/verbs/connection.h"
#include "injector/verbs/rule.h"
#include "tests/support/verbs/verbs_library.h"

namespace faultline::testing {

using injector::verbs::Connection;
using injector::verbs::Counters;
using injector::verbs::Effect;
using injector::verbs::kInjectedVendorError;
using injector::verbs::Match;
using injector::verbs::QueuePairFacts;
using injector::verbs::Rule;
using injector::verbs::Side;

inline const FakeControls& fake() {
  static const FakeControls& controls = fakeControlsOf(FAULTLINE_FAKE_IBVERBS);
  return controls;
}

inline const VerbsLibrary& shimLibrary() {
  static const VerbsLibrary library = [] {
    ::setenv("FAULTLINE_VERBS_LIB", FAULTLINE_FAKE_IBVERBS, 1);
    return VerbsLibrary::load(FAULTLINE_VERBS_SHIM);
  }();
  return library;
}

/// One open device with a completion queue and what is made on them; all of it goes at the end.
class Device {
 public:
  explicit Device(int index, int entries = 256, bool events = false) {
    const VerbsLibrary& verbs = shimLibrary();
    ibv_device** const list = verbs.getDeviceList(nullptr);
    context = verbs.openDevice(list[index]);
    verbs.freeDeviceList(list);
    pd = verbs.allocPd(context);
    if (events) channel = verbs.createChannel(context);
    cq = verbs.createCq(context, entries, nullptr, channel, 0);
  }
  ~Device() {
    for (ibv_qp* const qp : queue_pairs_) shimLibrary().destroyQp(qp);
    shimLibrary().destroyCq(cq);
    if (channel != nullptr) shimLibrary().destroyChannel(channel);
    shimLibrary().deallocPd(pd);
    if (context != nullptr) shimLibrary().closeDevice(context);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_qp* makeQp(std::uint32_t peer = 0, bool signal_all = true) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap.max_send_wr = 64;
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = signal_all ? 1 : 0;
    queue_pairs_.push_back(shimLibrary().createQp(pd, &init));
    connect(queue_pairs_.back(), peer);
    return queue_pairs_.back();
  }

  /// With ibv_wr_start() and so on.
  ibv_qp_ex* makeExtendedQp(bool signal_all = true) {
    ibv_qp_init_attr_ex init{};
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.pd = pd;
    init.send_cq = init.recv_cq = cq;
    init.cap.max_send_wr = 64;
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = signal_all ? 1 : 0;
    ibv_qp* const qp = verbs_get_ctx(context)->create_qp_ex(context, &init);
    queue_pairs_.push_back(qp);
    connect(qp, 0);
    return shimLibrary().toExtended(qp);
  }

  static void connect(ibv_qp* qp, std::uint32_t peer) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.dest_qp_num = peer;
    shimLibrary().modifyQp(qp, &attributes, IBV_QP_STATE | IBV_QP_DEST_QPN);
  }

  void destroy(ibv_qp* qp) {
    std::erase(queue_pairs_, qp);
    shimLibrary().destroyQp(qp);
  }

  std::vector<ibv_wc> poll(int most = 16) const {
    std::vector<ibv_wc> completions(static_cast<std::size_t>(most));
    const int got = ibv_poll_cq(cq, most, completions.data());
    EXPECT_GE(got, 0);
    completions.resize(static_cast<std::size_t>(std::max(got, 0)));
    return completions;
  }

  ibv_context* context = nullptr;  ///< nullptr at the end: it is closed already
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;

 private:
  std::vector<ibv_qp*> queue_pairs_;
};

/// By its owner.
inline void putInState(ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  EXPECT_EQ(shimLibrary().modifyQp(qp, &attributes, IBV_QP_STATE), 0);
}

/// A send of so many bytes, one request.
inline int postSend(ibv_qp* qp, std::uint64_t id, std::uint32_t bytes = 0, unsigned flags = 0) {
  ibv_sge data{0, bytes, 0};
  ibv_send_wr request{};
  request.wr_id = id;
  request.sg_list = &data;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = flags;
  ibv_send_wr* bad = nullptr;
  const int result = ibv_post_send(qp, &request, &bad);
  EXPECT_EQ(bad, result == 0 ? nullptr : &request);
  return result;
}

inline int postRecv(ibv_qp* qp, std::uint64_t id) {
  ibv_recv_wr request{};
  request.wr_id = id;
  ibv_recv_wr* bad = nullptr;
  const int result = ibv_post_recv(qp, &request, &bad);
  EXPECT_EQ(bad, result == 0 ? nullptr : &request);
  return result;
}

inline std::vector<std::uint64_t> idsOf(const std::vector<ibv_wc>& completions) {
  std::vector<std::uint64_t> ids;
  for (const ibv_wc& completion : completions) ids.push_back(completion.wr_id);
  return ids;
}

template <typename T>
T valueOf(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (!result.ok()) std::abort();
  return *std::move(result);
}

/// Looks again until it is so, for at most some seconds.
template <typename Condition>
::testing::AssertionResult becomes(Condition condition) {
  for (const TimePoint deadline = now() + 5s; now() < deadline; ::poll(nullptr, 0, 1)) {
    if (condition()) return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "not within 5 s";
}

/// The controller of this process's own shim.
class ShimTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake();
    shimLibrary();
  }
  void TearDown() override {
    fake().failPosts(0);
    fake().failModify(0);
    fake().failDestroy(0);
    fake().ignoreError(false);
    fake().failPollsAfter(-1);
    fake().hideBad(false);
    fake().blockPolls(false);
    fake().blockClose(false);
    fake().failCreate(0);
    fake().failQuery(0);
    fake().failAsk(0);
    fake().blockModify(false);
  }

  static Connection connect() { return valueOf(Connection::open(::getpid())); }

  static Rule rule(Effect effect, const ibv_qp* qp = nullptr) {
    Rule rule{.effect = effect, .lease = 10s};
    if (qp != nullptr) rule.match.number = qp->qp_num;
    rule.error = ENOMEM;
    rule.status = IBV_WC_RETRY_EXC_ERR;
    rule.delay = 50ms;
    rule.bitsPerSecond = 8'000'000;
    return rule;
  }
  /// Nothing of it comes before it is disarmed.
  static Rule longDelay(const ibv_qp* qp = nullptr) {
    Rule slow = rule(Effect::kQpDelay, qp);
    slow.delay = 10s;
    return slow;
  }
};

}  // namespace faultline::testing
