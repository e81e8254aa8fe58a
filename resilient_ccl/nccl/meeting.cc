#include "resilient_ccl/nccl/meeting.h"

#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "resilient_ccl/auth/mutual_proof.h"

namespace faultline::nccl {
namespace {

constexpr std::uint32_t kChallengeMagic = 0x31434c46;  // "FLC1"

struct ChallengeWire {
  std::uint32_t magic = kChallengeMagic;
  std::uint32_t version = kProtocolVersion;
  std::uint32_t keyed = 0;
  std::uint32_t unused = 0;
  auth::Nonce nonce{};
  auth::PublicKey key{};
};
static_assert(sizeof(ChallengeWire) == 64);

template <typename T>
std::span<const std::byte> bytesOfValue(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
std::span<const std::byte> bytesOfText(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string withProof(std::string message, const auth::Tag& tag) {
  message.append(reinterpret_cast<const char*>(tag.data()), tag.size());
  return message;
}

/// The message in front of the proof, and the proof.
std::optional<std::pair<std::string_view, auth::Tag>> takeApart(std::string_view frame) {
  if (frame.size() < Meeting::kProofBytes) return std::nullopt;
  const std::string_view message = frame.substr(0, frame.size() - Meeting::kProofBytes);
  auth::Tag tag;
  std::memcpy(tag.data(), frame.data() + message.size(), tag.size());
  return std::pair(message, tag);
}

}  // namespace

std::string Challenge::serialize() const {
  const ChallengeWire wire{.keyed = keyed ? 1U : 0U, .nonce = nonce, .key = key};
  return {reinterpret_cast<const char*>(&wire), sizeof(wire)};
}

Result<Challenge> Challenge::parse(const std::string& bytes) {
  ChallengeWire wire;
  if (bytes.size() == sizeof(wire)) std::memcpy(&wire, bytes.data(), sizeof(wire));
  if (bytes.size() != sizeof(wire) || wire.magic != kChallengeMagic) {
    return errorf(Code::kInvalidArgument, "it does not begin as Faultline's plugin does");
  }
  if (wire.version != kProtocolVersion) {
    return errorf(Code::kInvalidArgument,
                  "its Faultline plugin speaks version {}, this one {}: install the same",
                  wire.version, kProtocolVersion);
  }
  return Challenge{.nonce = wire.nonce, .key = wire.key, .keyed = wire.keyed != 0};
}

Result<Meeting> Meeting::make(const Identity& own, const auth::PublicKey& other, const Keys& keys,
                              const auth::JobKey& token, const transport::tcp::Endpoint& rendezvous,
                              std::string challenge) {
  ASSIGN_OR_RETURN(const auth::Secret secret, own.keys.agree(other));
  // What both have known before: its length tells a job with a key from one without.
  std::array<std::byte, 2 * auth::JobKey::kBytes> known{};
  std::memcpy(known.data(), token.bytes().data(), auth::JobKey::kBytes);
  std::size_t size = auth::JobKey::kBytes;
  if (own.jobKey) {
    std::memcpy(known.data() + size, own.jobKey->bytes().data(), auth::JobKey::kBytes);
    size += auth::JobKey::kBytes;
  }
  const std::array<std::uint32_t, 2> place{rendezvous.address, rendezvous.port};
  const auto keyFor = [&](std::string_view purpose) {
    return auth::deriveKey(std::span(known).first(size), secret.bytes(),
                           {bytesOfText(purpose), bytesOfValue(kProtocolVersion),
                            bytesOfValue(place), bytesOfText(challenge), bytesOfValue(keys)});
  };
  Meeting meeting(keyFor("faultline caller"), keyFor("faultline callee"), keys, challenge);
  auth::wipe(known);
  return meeting;
}

Result<Meeting> Meeting::ofCaller(const Identity& own, const Handle& to, std::string challenge) {
  ASSIGN_OR_RETURN(const Challenge heard, Challenge::parse(challenge));
  if (ProcessId::of(heard.key) != to.process) {
    return errorf(Code::kInvalidArgument, "it is another process than the one of the handle");
  }
  if (heard.keyed != own.jobKey.has_value()) {
    return errorf(Code::kInvalidArgument,
                  "FAULTLINE_KEY is set {}: set it alike on all nodes, or on none",
                  heard.keyed ? "there and not here" : "here and not there");
  }
  return make(own, heard.key, {.caller = own.keys.publicKey(), .callee = heard.key}, to.token,
              to.rendezvous, std::move(challenge));
}

Result<Meeting> Meeting::ofListener(const Identity& own, const auth::JobKey& token,
                                    const transport::tcp::Endpoint& rendezvous,
                                    std::string challenge, const auth::PublicKey& caller) {
  return make(own, caller, {.caller = caller, .callee = own.keys.publicKey()}, token, rendezvous,
              std::move(challenge));
}

std::string Meeting::signGreeting(std::string greeting) {
  greeting_ = std::move(greeting);
  const auth::Tag tag = auth::signHello(callers_, bytesOfText(challenge_), bytesOfText(greeting_));
  return withProof(greeting_, tag);
}

std::optional<std::string> Meeting::openGreeting(std::string_view frame) {
  const auto parts = takeApart(frame);
  if (!parts || !auth::verifyHello(callers_, bytesOfText(challenge_), bytesOfText(parts->first),
                                   parts->second)) {
    return std::nullopt;
  }
  greeting_ = parts->first;
  return greeting_;
}

std::string Meeting::signAnswer(std::string answer) {
  const auth::Tag tag = auth::signAnswer(callees_, bytesOfText(challenge_), bytesOfText(greeting_),
                                         bytesOfText(answer));
  return withProof(std::move(answer), tag);
}

std::optional<std::string> Meeting::openAnswer(std::string_view frame) {
  const auto parts = takeApart(frame);
  if (!parts || !auth::verifyAnswer(callees_, bytesOfText(challenge_), bytesOfText(greeting_),
                                    bytesOfText(parts->first), parts->second)) {
    return std::nullopt;
  }
  return std::string(parts->first);
}

Result<auth::JobKey> agreeOnPairKey(const Identity& own, const auth::PublicKey& other, int side,
                                    std::uint64_t incarnation, std::uint64_t otherIncarnation) {
  ASSIGN_OR_RETURN(const auth::Secret secret, own.keys.agree(other));
  std::array<auth::PublicKey, 2> keys{own.keys.publicKey(), other};
  std::array<std::uint64_t, 2> incarnations{incarnation, otherIncarnation};
  if (side != 0) {
    std::swap(keys[0], keys[1]);
    std::swap(incarnations[0], incarnations[1]);
  }
  const std::span<const std::byte> salt =
      own.jobKey ? std::span<const std::byte>(own.jobKey->bytes()) : std::span<const std::byte>();
  return auth::deriveKey(salt, secret.bytes(),
                         {bytesOfText("faultline pair"), bytesOfValue(kProtocolVersion),
                          bytesOfValue(keys), bytesOfValue(incarnations)});
}

}  // namespace faultline::nccl
