#include "resilient_ccl/auth/mutual_proof.h"

#include <array>
#include <cstdint>

namespace faultline::auth {
namespace {

/// What is signed begins with the word of who signs, and with the lengths: where one part ends and
/// the next one begins is signed, too.
struct Preface {
  std::uint32_t word, challenge, hello, answer;
};
static_assert(sizeof(Preface) == 16);

constexpr std::uint32_t kHelloWord = 0x48434c46;   // "FLCH"
constexpr std::uint32_t kAnswerWord = 0x41434c46;  // "FLCA"

Preface prefaceOf(std::uint32_t word, std::span<const std::byte> challenge,
                  std::span<const std::byte> hello, std::span<const std::byte> answer) {
  return {.word = word,
          .challenge = static_cast<std::uint32_t>(challenge.size()),
          .hello = static_cast<std::uint32_t>(hello.size()),
          .answer = static_cast<std::uint32_t>(answer.size())};
}

}  // namespace

Tag signHello(Authenticator& authenticator, std::span<const std::byte> challenge,
              std::span<const std::byte> hello) {
  const Preface preface = prefaceOf(kHelloWord, challenge, hello, {});
  return authenticator.tagOf({std::as_bytes(std::span(&preface, 1)), challenge, hello});
}

bool verifyHello(Authenticator& authenticator, std::span<const std::byte> challenge,
                 std::span<const std::byte> hello, const Tag& tag) {
  const Preface preface = prefaceOf(kHelloWord, challenge, hello, {});
  return authenticator.verify({std::as_bytes(std::span(&preface, 1)), challenge, hello}, tag);
}

Tag signAnswer(Authenticator& authenticator, std::span<const std::byte> challenge,
               std::span<const std::byte> hello, std::span<const std::byte> answer) {
  const Preface preface = prefaceOf(kAnswerWord, challenge, hello, answer);
  return authenticator.tagOf({std::as_bytes(std::span(&preface, 1)), challenge, hello, answer});
}

bool verifyAnswer(Authenticator& authenticator, std::span<const std::byte> challenge,
                  std::span<const std::byte> hello, std::span<const std::byte> answer,
                  const Tag& tag) {
  const Preface preface = prefaceOf(kAnswerWord, challenge, hello, answer);
  return authenticator.verify({std::as_bytes(std::span(&preface, 1)), challenge, hello, answer},
                              tag);
}

}  // namespace faultline::auth
