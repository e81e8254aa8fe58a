#include "harness/site/hosts/name_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

namespace faultline::hosts {
namespace {

constexpr std::size_t kMostResolvers = 16;  // threads

std::vector<std::string> resolved(const std::string& name) {
  std::vector<std::string> addresses;
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &wanted, &list) != 0) return addresses;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    char text[INET_ADDRSTRLEN];
    const auto& address = *reinterpret_cast<const sockaddr_in*>(at->ai_addr);
    if (::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text) != nullptr) {
      addresses.emplace_back(text);
    }
  }
  ::freeaddrinfo(list);
  return addresses;
}

}  // namespace

struct NameLookup::Shared {
  explicit Shared(std::vector<std::string> asked)
      : names(std::move(asked)), answers(names.size()) {}

  const std::vector<std::string> names;
  std::mutex mutex;
  std::size_t next = 0;
  std::vector<std::optional<std::vector<std::string>>> answers;
};

NameLookup::NameLookup(std::vector<std::string> names)
    : shared_(std::make_shared<Shared>(std::move(names))) {
  const std::size_t threads = std::min(kMostResolvers, shared_->names.size());
  for (std::size_t i = 0; i < threads; ++i) {
    std::thread([shared = shared_] {
      std::unique_lock lock(shared->mutex);
      while (shared->next < shared->names.size()) {
        const std::size_t name = shared->next++;
        lock.unlock();
        std::vector<std::string> addresses = resolved(shared->names[name]);
        lock.lock();
        shared->answers[name] = std::move(addresses);
      }
    }).detach();
  }
}

std::optional<std::vector<std::string>> NameLookup::answer(std::size_t name) const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->answers[name];
}

}  // namespace faultline::hosts
