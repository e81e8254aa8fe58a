#include "resilient_ccl/nccl/plugin.h"

#include <pthread.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/atomic_file.h"
#include "base/log.h"
#include "base/refused_calls.h"
#include "base/write_signals.h"
#include "resilient_ccl/auth/authenticator.h"
#include "resilient_ccl/nccl/counters.h"

namespace faultline::nccl {

/// Our log becomes NCCL's.
class NcclSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit NcclSink(NetLogger logger) : logger_(logger) {}
  /// From now on everything goes there.
  void to(NetLogger logger) { logger_ = logger; }
  /// From now on warnings go there instead.
  void toStderr() { toStderr_ = true; }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (toStderr_) {
      if (message.level >= spdlog::level::warn) {
        const WithoutWriteSignals quiet;
        const std::string line = fmt::format("NET/Faultline: {}\n", message.payload);
        // Nothing is thrown when it fails: spdlog would write about that, and take the signal.
        (void)std::fwrite(line.data(), 1, line.size(), stderr);
      }
      return;
    }
    const NetLogLevel level = message.level >= spdlog::level::warn   ? NetLogLevel::kWarn
                              : message.level == spdlog::level::info ? NetLogLevel::kInfo
                                                                     : NetLogLevel::kTrace;
    logger_.load()(level, kInitSubsystem | kNetSubsystem, "faultline", 0, "NET/Faultline: %.*s",
                   static_cast<int>(message.payload.size()), message.payload.data());
  }
  void flush_() override {}

  std::atomic<NetLogger> logger_;
  std::atomic<bool> toStderr_{false};
};

namespace {

/// What does not work is refused, with cause and cure; what works and costs something is said.
Status checkNetwork(const fabric::NetworkSnapshot& network, const std::vector<Interface>& rails,
                    const Interface& management) {
  for (const fabric::NetworkFinding& finding : networkFindings(network, rails, management)) {
    const std::string text =
        fmt::format("{}: {}; {}. {}", finding.subject, finding.cause, finding.cost, finding.cure);
    if (finding.refused) return errorf(Code::kNotFound, "{}", text);
    spdlog::log(finding.severe ? spdlog::level::warn : spdlog::level::info, "{}", text);
  }
  return okStatus();
}

/// An attempt to connect is known by a number that is written into NCCL's copy of the handle, which
/// is the same memory whenever it asks again.
constexpr std::size_t kAttemptAt = kNetHandleBytes - sizeof(std::uint64_t);

template <typename T>
T* as(void* object) {
  return static_cast<T*>(object);
}

}  // namespace

Plugin& Plugin::instance() {
  // Never destroyed: NCCL's threads may outlive static objects.
  static Plugin* const plugin = new Plugin;
  return *plugin;
}

NetResult Plugin::resultOf(const Status& status) const {
  if (status.ok()) return NetResult::kSuccess;
  if (!gone_) spdlog::warn("{}", status.message());
  switch (status.code()) {
    case Code::kInvalidArgument:
    case Code::kNotFound:
      return NetResult::kInvalidUsage;
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kAborted:
      return NetResult::kRemoteError;
    case Code::kInternal:
      return NetResult::kInternalError;
    default:
      return NetResult::kSystemError;
  }
}

NetResult Plugin::init(NetLogger log, bool hasEnd) {
  // Before the lock: another thread of the parent may have had it at the moment of the fork.
  if (gone_) return NetResult::kInternalError;
  const std::lock_guard lock(mutex_);
  if (gone_) return NetResult::kInternalError;  // meanwhile
  if (!hasEnd) hasEnd_ = false;
  if (communicators_ > 0) {
    ++communicators_;
    return NetResult::kSuccess;
  }
  // One for all lives: threads that are still closing what an earlier one left may log just now.
  if (log != nullptr && ncclsLog_) {
    ncclsLog_->to(log);
  } else if (log != nullptr) {
    ncclsLog_ = std::make_shared<NcclSink>(log);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("faultline", ncclsLog_));
  }
  log_ = spdlog::default_logger();
  static const int atFork = pthread_atfork(nullptr, nullptr, [] { Plugin::instance().forked(); });
  (void)atFork;
  standard_.emplace();
  const Status status = start();
  if (!status.ok()) {
    standard_.reset();
    return resultOf(status);
  }
  communicators_ = 1;
  // Version 10 knows no end: the library's own, or the process's, is it. Registered only now, to
  // run before what is in use by now takes its leave: the log and libcrypto.
  static const int atExit = std::atexit([] { Plugin::instance().leave(); });
  (void)atExit;
  return NetResult::kSuccess;
}

Status Plugin::start() {
  if (!auth::Authenticator::available() || !auth::KeyPair::available()) {
    return errorf(Code::kUnsupported,
                  "the OpenSSL inside this plugin was built without SipHash, X25519 or HKDF: build "
                  "the plugin with another one");
  }
  RETURN_IF_ERROR(checkCalls(callsOfPlugin()));
  for (const std::string& mistake : likelyMistakes(environmentNames())) {
    spdlog::warn("{}", mistake);
  }
  ASSIGN_OR_RETURN(options_, Options::readProcess());
  RETURN_IF_ERROR(checkFiles(options_));
  ASSIGN_OR_RETURN(const fabric::NetworkSnapshot network, fabric::readNetwork());
  const std::vector<Interface> interfaces = interfacesOf(network);
  ASSIGN_OR_RETURN(const std::vector<Interface> rails,
                   chooseRails(interfaces, options_.nics, options_.socketInterfaces));
  ASSIGN_OR_RETURN(const Interface management, chooseManagement(interfaces, options_.management,
                                                                options_.socketInterfaces, rails));
  RETURN_IF_ERROR(checkNetwork(network, rails, management));
  std::vector<Device> devices;
  for (const Interface& rail : rails) devices.push_back(inspect(rail, "/sys"));
  for (const Device& device : devices) {
    spdlog::info("rail {} at {} Mbit/s{}{}", device.interface.name, device.speed,
                 device.pciPath.empty() ? "" : ", ", device.pciPath);
  }
  for (const Interface& rail : rails) {
    if (rail.name == management.name) {
      spdlog::warn(
          "management uses {}, which is a rail: when it fails, no new connections can be made; "
          "name another interface in FAULTLINE_MANAGEMENT",
          rail.name);
    }
  }
  ASSIGN_OR_RETURN(auto directory, Directory::create(options_, devices, management));
  ioThreads_ = directory->ioThreads();
  {
    const std::lock_guard lock(present_);
    devices_ = std::move(devices);
    directory_ = std::move(directory);
  }
  spdlog::info("management over {}; {} I/O threads; {}", management.name, ioThreads_,
               options_.describe());
  return okStatus();
}

/// With files that say what has been until now.
std::unique_ptr<Directory> Plugin::end() {
  std::unique_ptr<Directory> ending;
  {
    const std::lock_guard lock(present_);
    ending = std::move(directory_);
  }
  Accounts first = accounts_;
  first.add(ending->accounts());
  writeFiles(first, Sync::kNo);  // in case that this process does not outlive what follows
  ending->finish();
  accounts_.add(ending->accounts());
  writeFiles(accounts_, Sync::kYes);
  return ending;
}

void Plugin::writeFiles(const Accounts& accounts, Sync sync) {
  const auto write = [&](const char* variable, const std::string& pattern, const auto& text) {
    // A stream gets what is final, once.
    if (pattern.empty() || (sync == Sync::kNo && isStream(filePath(pattern)))) return;
    const Status written = writeFileAtomically(filePath(pattern), text(), sync);
    if (!written.ok()) spdlog::warn("{}: {}", variable, written.message());
  };
  write("FAULTLINE_COUNTERS", options_.counters, [&] {
    return countersJson({.options = options_.describe(),
                         .ioThreads = ioThreads_,
                         .devices = devices_,
                         .accounts = accounts});
  });
  write("FAULTLINE_TRACE", options_.trace, [&] {
    std::vector<PeerHistory> peers;
    for (const Pair::Account& one : accounts.latest)
      peers.push_back({one.peer, one.history, one.devices});
    return traceJson(devices_, peers);
  });
}

NetResult Plugin::finalize() {
  if (gone_) return NetResult::kSuccess;
  const std::lock_guard lock(mutex_);
  if (communicators_ == 0 || --communicators_ > 0 || !directory_) return NetResult::kSuccess;
  (void)end();
  standard_.reset();
  return NetResult::kSuccess;
}

void Plugin::leave() {
  if (gone_) return;
  const std::lock_guard lock(mutex_);
  if (!directory_) {
    gone_ = true;
    return;
  }
  communicators_ = 0;
  if (ncclsLog_) ncclsLog_->toStderr();  // NCCL may be gone
  const std::unique_ptr<Directory> ended = end();
  // Threads may call until the process is gone, when NCCL's log is not there any more, nor, in the
  // end, what their receives would be written to.
  gone_ = true;
  log_->set_level(spdlog::level::off);
  ended->abandon();
}

template <typename Call>
NetResult Plugin::withDirectory(Call call) {
  // Before the lock: another thread of the parent may have had it at the moment of the fork.
  if (gone_) return NetResult::kInternalError;
  const std::lock_guard lock(present_);
  return directory_ ? call(*directory_) : NetResult::kInternalError;
}

NetResult Plugin::devices(int* count) {
  if (gone_) return NetResult::kInternalError;
  const std::lock_guard lock(present_);
  *count = static_cast<int>(devices_.size());
  return NetResult::kSuccess;
}

/// Under the lock.
bool Plugin::isDevice(int number) const {
  if (number >= 0 && number < static_cast<int>(devices_.size())) return true;
  spdlog::warn("there is no device {}, there are {}", number, devices_.size());
  return false;
}

const Device* Plugin::device(int number) {
  if (gone_) return nullptr;
  const std::lock_guard lock(present_);
  return isDevice(number) ? &devices_[number] : nullptr;
}

NetResult Plugin::listen(int device, void* handle, void** listener) {
  return withDirectory([&](Directory& directory) {
    if (!isDevice(device)) return NetResult::kInvalidArgument;
    const std::uint64_t number = directory.listen();
    directory.handleOf(number).write(
        std::span<std::byte, kNetHandleBytes>(as<std::byte>(handle), kNetHandleBytes));
    *listener = new std::uint64_t(number);
    return NetResult::kSuccess;
  });
}

NetResult Plugin::connect(int device, void* handle, void** connection) {
  *connection = nullptr;
  return withDirectory([&](Directory& directory) {
    if (!isDevice(device)) return NetResult::kInvalidArgument;
    auto* const bytes = as<std::byte>(handle);
    std::uint64_t attempt = 0;
    std::memcpy(&attempt, bytes + kAttemptAt, sizeof(attempt));
    if (attempt == 0) {
      const auto to =
          Handle::read(std::span<const std::byte, kNetHandleBytes>(bytes, kNetHandleBytes));
      if (!to.ok()) return resultOf(to.status());
      const auto begun = directory.connect(*to, device);
      if (!begun.ok()) return resultOf(begun.status());
      attempt = *begun;
      std::memcpy(bytes + kAttemptAt, &attempt, sizeof(attempt));
    }
    auto made = directory.finish(attempt);
    if (made.ok() && *made == nullptr) return NetResult::kSuccess;
    attempt = 0;
    std::memcpy(bytes + kAttemptAt, &attempt, sizeof(attempt));
    if (!made.ok()) return resultOf(made.status());
    *connection = made->release();
    return NetResult::kSuccess;
  });
}

NetResult Plugin::accept(void* listener, void** connection) {
  *connection = nullptr;
  return withDirectory([&](Directory& directory) {
    auto made = directory.accept(*as<std::uint64_t>(listener));
    if (!made.ok()) return resultOf(made.status());
    *connection = made->release();
    return NetResult::kSuccess;
  });
}

NetResult Plugin::closeListen(void* listener) {
  const std::unique_ptr<std::uint64_t> number(as<std::uint64_t>(listener));
  if (!number) return NetResult::kSuccess;
  (void)withDirectory([&](Directory& directory) {
    directory.closeListener(*number);
    return NetResult::kSuccess;
  });
  return NetResult::kSuccess;
}

NetResult Plugin::registerMemory(int type, void* data, void** region) {
  if (type != kNetPointerHost) {
    spdlog::warn("memory of type {} cannot be registered: this plugin moves host memory", type);
    return NetResult::kInternalError;
  }
  *region = data;  // TCP needs no registration
  return NetResult::kSuccess;
}

NetResult Plugin::isend(void* connection, void* data, std::size_t size, int tag, void** request) {
  if (gone_) return NetResult::kInternalError;
  auto& it = *as<Connection>(connection);
  *request = it.pair->send(it, static_cast<std::uint32_t>(tag), as<const std::byte>(data),
                           static_cast<Bytes>(size));
  return NetResult::kSuccess;
}

NetResult Plugin::irecv(void* connection, int count, void** data, const std::size_t* sizes,
                        const int* tags, void** request) {
  if (gone_) return NetResult::kInternalError;
  if (count < 1 || count > kMostReceives) {
    spdlog::warn("a grouped receive of {} buffers: {} at most", count, kMostReceives);
    return NetResult::kInvalidArgument;
  }
  std::array<Pair::Buffer, kMostReceives> buffers;
  for (int i = 0; i < count; ++i) {
    buffers[i] = {.tag = static_cast<std::uint32_t>(tags[i]),
                  .data = as<std::byte>(data[i]),
                  .capacity = static_cast<Bytes>(sizes[i])};
  }
  auto& it = *as<Connection>(connection);
  *request = it.pair->receive(it, std::span(buffers).first(count));
  return NetResult::kSuccess;
}

NetResult Plugin::test(void* request, int* done, int* sizes) {
  *done = 0;
  if (gone_) return NetResult::kInternalError;
  auto& it = *as<Request>(request);
  const auto outcome = it.connection->pair->test(it, sizes);
  if (!outcome.ok()) return resultOf(outcome.status());
  *done = *outcome ? 1 : 0;
  return NetResult::kSuccess;
}

NetResult Plugin::close(void* connection) {
  const std::unique_ptr<Connection> it(as<Connection>(connection));
  if (!it || gone_) return NetResult::kSuccess;
  const bool last = it->pair->close(*it);
  if (last && !hasEnd_) awaitDelivery(*it->pair);
  return NetResult::kSuccess;
}

void Plugin::awaitDelivery(Pair& pair) {
  const TimePoint begin = now();
  Duration patience{};
  {
    const std::lock_guard lock(closing_);
    patience = lastCloses_.patience(begin);
  }
  if (pair.drain(begin + patience, /*unused=*/true)) return;
  spdlog::warn(
      "{} has not got all that was sent to it {} after its last connection was closed: what is not "
      "delivered when the process ends is lost",
      pair.peer(), formatDuration(std::chrono::round<std::chrono::milliseconds>(patience)));
  const std::lock_guard lock(closing_);
  const TimePoint end = now();
  lastCloses_.waitedInVain(end - begin, end);
}

}  // namespace faultline::nccl
