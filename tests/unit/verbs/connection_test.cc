// The controller's end, against shims that are not ours: what answers is in somebody's program.
#include "injector/verbs/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "injector/verbs/address.h"

namespace faultline::injector::verbs {
namespace {

using ::testing::HasSubstr;

/// Where the shim of this process would be. Answers each request with `answer`; nothing: not at
/// all.
class FakeShim {
 public:
  using Answer = std::function<std::optional<Message>(const Message&)>;

  explicit FakeShim(Answer answer)
      : path_(socketPath(defaultFolder(::geteuid()), ::getpid(), pidNamespaceOf("self"))),
        listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    ::mkdir(defaultFolder(::geteuid()).c_str(), S_IRWXU);
    ::unlink(path_.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0)
        << path_;
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::thread([this, answer = std::move(answer)] { serve(answer); });
  }
  ~FakeShim() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    ::unlink(path_.c_str());
  }

 private:
  void serve(const Answer& answer) {
    const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, Message::kMostBytes + 1> buffer;
    ssize_t size = 0;
    while ((size = ::recv(client.get(), buffer.data(), buffer.size(), 0)) > 0) {
      const auto request = Message::parse({buffer.data(), static_cast<std::size_t>(size)});
      const auto reply = request.ok() ? answer(*request) : std::nullopt;
      if (!reply) continue;
      const std::string packet = reply->serialize();
      ::send(client.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
    }
  }

  std::string path_;
  UniqueFd listener_;
  std::thread thread_;
};

Message countersReply(std::uint64_t happened) {
  Message reply("ok");
  Counters counters;
  counters.happened = happened;
  addCounters(reply, counters);
  return reply;
}

TEST(VerbsConnectionTest, AListWithoutEndIsNotReadForEver) {
  const FakeShim shim([](const Message&) {
    Message page("ok");
    page.add("total", UINT64_MAX);
    for (int i = 0; i < 100; ++i) page.add("qp", writeFacts({"a", 1, 2, 3, "::1", "RC", "RTS"}));
    return page;
  });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  const auto list = connection->list();
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.status().code(), Code::kIo);
  EXPECT_THAT(list.status().message(), HasSubstr("had no end"));
}

TEST(VerbsConnectionTest, AnAnswerThatNobodyTookIsNotTakenForTheNext) {
  const FakeShim shim(
      [](const Message& request) { return countersReply(request.verb() == "disarm" ? 7 : 3); });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  ASSERT_TRUE(connection->askCounters(1).ok());
  const auto counters = connection->disarm(1);
  ASSERT_TRUE(counters.ok()) << counters.status().message();
  EXPECT_EQ(counters->happened, 7u);
}

TEST(VerbsConnectionTest, NobodyWaitsForCountersThatDoNotCome) {
  const FakeShim shim([](const Message&) { return std::optional<Message>(); });
  auto connection = Connection::open(::getpid());
  ASSERT_TRUE(connection.ok()) << connection.status().message();
  ASSERT_TRUE(connection->askCounters(1).ok());
  const auto counters = connection->takeCounters(1ms);
  ASSERT_TRUE(counters.ok()) << counters.status().message();
  EXPECT_FALSE(counters->has_value());
}

}  // namespace
}  // namespace faultline::injector::verbs
