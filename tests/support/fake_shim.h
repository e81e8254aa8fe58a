#pragma once

#include <gtest/gtest.h>
#include <poll.h>
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

#include "base/unique_fd.h"
#include "injector/verbs/address.h"
#include "injector/verbs/message.h"

namespace faultline::testing {

/// Where the shim of this process would be. Answers each request with `answer`; nothing: not at
/// all.
class FakeShim {
 public:
  using Answer =
      std::function<std::optional<injector::verbs::Message>(const injector::verbs::Message&)>;

  explicit FakeShim(Answer answer) : FakeShim() {
    thread_ = std::thread([this, answer = std::move(answer)] {
      while (const UniqueFd client = accept()) serve(client, answer);
    });
  }
  /// Says this to whoever connects, and closes with what was asked unread.
  explicit FakeShim(const injector::verbs::Message& refusal) : FakeShim() {
    thread_ = std::thread([this, packet = refusal.serialize()] {
      while (const UniqueFd client = accept()) {
        ::send(client.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
        pollfd asked{client.get(), POLLIN, 0};
        ::poll(&asked, 1, -1);
      }
    });
  }
  ~FakeShim() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    ::unlink(path_.c_str());
  }

 private:
  FakeShim()
      : path_(injector::verbs::socketPath(injector::verbs::defaultFolder(::geteuid()), ::getpid(),
                                          injector::verbs::pidNamespaceOf("self"))),
        listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    ::mkdir(injector::verbs::defaultFolder(::geteuid()).c_str(), S_IRWXU);
    ::unlink(path_.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0)
        << path_;
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
  }

  /// The next client: whoever lists the programs with a shim comes by here, too.
  UniqueFd accept() { return UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

  static void serve(const UniqueFd& client, const Answer& answer) {
    std::array<char, injector::verbs::Message::kMostBytes + 1> buffer;
    ssize_t size = 0;
    while ((size = ::recv(client.get(), buffer.data(), buffer.size(), 0)) > 0) {
      const auto request =
          injector::verbs::Message::parse({buffer.data(), static_cast<std::size_t>(size)});
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

}  // namespace faultline::testing
