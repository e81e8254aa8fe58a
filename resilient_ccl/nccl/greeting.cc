#include "resilient_ccl/nccl/greeting.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>

namespace faultline::nccl {
namespace {

constexpr std::uint32_t kGreetingMagic = 0x32474c46;  // "FLG2"
constexpr std::uint32_t kAnswerMagic = 0x32414c46;    // "FLA2"

class Writer {
 public:
  template <typename T>
  Writer& add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  Writer& add(const std::string& text) {
    add(static_cast<std::uint16_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (bytes_.size() - at_ < sizeof(value)) {
      whole_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }
  std::string text() {
    const std::size_t length = take<std::uint16_t>();
    if (bytes_.size() - at_ < length) whole_ = false;
    if (!whole_) return {};
    at_ += length;
    return bytes_.substr(at_ - length, length);
  }
  bool whole() const { return whole_ && at_ == bytes_.size(); }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
  bool whole_ = true;
};

Status notUnderstood(const char* what) {
  return errorf(Code::kInvalidArgument,
                "{} is not understood: all nodes need the same Faultline plugin", what);
}

}  // namespace

std::string Greeting::serialize() const {
  return Writer()
      .add(kGreetingMagic)
      .add(key)
      .add(nonce)
      .add(incarnation)
      .add(listener)
      .add(connection)
      .add(terms)
      .add(name)
      .add(address.serialize())
      .take();
}

Result<Greeting> Greeting::parse(const std::string& bytes) {
  Reader reader(bytes);
  const auto magic = reader.take<std::uint32_t>();
  Greeting greeting;
  greeting.key = reader.take<auth::PublicKey>();
  greeting.nonce = reader.take<auth::Nonce>();
  greeting.incarnation = reader.take<std::uint64_t>();
  greeting.listener = reader.take<std::uint64_t>();
  greeting.connection = reader.take<std::uint32_t>();
  greeting.terms = reader.take<Terms>();
  greeting.name = reader.text();
  const std::string address = reader.text();
  if (magic != kGreetingMagic || !reader.whole()) return notUnderstood("the peer's greeting");
  ASSIGN_OR_RETURN(greeting.address, fabric::ProcessAddress::parse(address));
  return greeting;
}

Result<auth::PublicKey> Greeting::keyOf(std::string_view bytes) {
  const std::string beginning(bytes.substr(0, sizeof(kGreetingMagic) + sizeof(auth::PublicKey)));
  Reader reader(beginning);
  const auto magic = reader.take<std::uint32_t>();
  const auto key = reader.take<auth::PublicKey>();
  if (magic != kGreetingMagic || !reader.whole()) return notUnderstood("the caller's greeting");
  return key;
}

std::string Answer::serialize() const {
  return Writer()
      .add(kAnswerMagic)
      .add(refusal)
      .add(incarnation)
      .add(refusal.empty() ? address.serialize() : std::string())
      .take();
}

Result<Answer> Answer::parse(const std::string& bytes) {
  Reader reader(bytes);
  const auto magic = reader.take<std::uint32_t>();
  Answer answer;
  answer.refusal = reader.text();
  answer.incarnation = reader.take<std::uint64_t>();
  const std::string address = reader.text();
  const bool surplus = !answer.refusal.empty() && !address.empty();
  if (magic != kAnswerMagic || !reader.whole() || surplus) {
    return notUnderstood("the peer's answer");
  }
  if (answer.refusal.empty()) {
    ASSIGN_OR_RETURN(answer.address, fabric::ProcessAddress::parse(address));
  }
  return answer;
}

void Frames::send(std::string_view bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  out_.append(reinterpret_cast<const char*>(&length), sizeof(length));
  out_ += bytes;
}

Result<bool> Frames::flush() {
  while (!out_.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (sent < 0) return Status::fromErrno(errno, "greet a peer");
    out_.erase(0, static_cast<std::size_t>(sent));
  }
  return true;
}

Result<std::optional<std::string>> Frames::receive() {
  std::uint32_t length = 0;
  for (;;) {
    if (in_.size() >= sizeof(length)) {
      std::memcpy(&length, in_.data(), sizeof(length));
      if (length > kLongest) return notUnderstood("what the peer said");
      if (in_.size() >= sizeof(length) + length) {
        std::string frame = in_.substr(sizeof(length), length);
        in_.erase(0, sizeof(length) + length);
        return std::optional(std::move(frame));
      }
    }
    std::array<char, 4096> buffer;
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::optional<std::string>();
    if (got < 0) return Status::fromErrno(errno, "hear from a peer");
    if (got == 0) return errorf(Code::kUnavailable, "the peer hung up before it had answered");
    in_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace faultline::nccl
