// The controller's fault, against a shim that says what the test wants.
#include "injector/faults/verbs_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "injector/verbs/wire.h"
#include "tests/support/fake_shim.h"

namespace faultline::injector {
namespace {

using faultline::testing::FakeShim;

class VerbsFaultTest : public ::testing::Test {
 protected:
  verbs::Message answer(const verbs::Message& request) {
    verbs::Message reply("ok");
    if (request.verb() == "hello") {
      addShimFacts(reply, {.pid = static_cast<std::uint64_t>(::getpid())});
    } else if (request.verb() == "arm") {
      reply.add("fault", 1);
    } else if (request.verb() == "disarm" && leaseEnded_) {
      return verbs::errorMessage(errorf(Code::kNotFound, "its lease ended"));
    } else {
      addCounters(reply, {.happened = 3});
    }
    return reply;
  }

  std::atomic<bool> leaseEnded_{false};
  FakeShim shim_{[this](const verbs::Message& request) { return answer(request); }};
  VerbsFault fault_{verbs::Effect::kPostError,
                    *FaultParameters::parse(*findFaultKind("post_error"), {}), program(::getpid())};
};

// This process was stopped between its last look and the end: the shim knows better than it.
TEST_F(VerbsFaultTest, ALeaseThatEndedUnnoticedIsToldAfterTheEnd) {
  ASSERT_TRUE(fault_.prepare().ok());
  const TimePoint begin = now();
  ASSERT_TRUE(fault_.apply().ok());
  const auto evidence = fault_.evidence();
  ASSERT_TRUE(evidence.ok()) << evidence.status().message();
  EXPECT_TRUE(evidence->ok);
  EXPECT_FALSE(fault_.lapsedAt());
  leaseEnded_ = true;
  ASSERT_TRUE(fault_.revert().ok()) << "it is whole again, whoever did it";
  ASSERT_TRUE(fault_.lapsedAt());
  EXPECT_GE(*fault_.lapsedAt(), begin + 2s) << "as long as the lease";
  EXPECT_LE(*fault_.lapsedAt(), now() + 2s);
  leaseEnded_ = false;
  ASSERT_TRUE(fault_.apply().ok());
  ASSERT_TRUE(fault_.revert().ok());
  EXPECT_FALSE(fault_.lapsedAt()) << "this time it was taken back";
}

}  // namespace
}  // namespace faultline::injector
