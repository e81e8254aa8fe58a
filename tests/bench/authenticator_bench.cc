// The tag of one control datagram, with each of OpenSSL's codes that could have been used; a
// datagram with a grant or two is about 200 bytes long. The reused context is ours.

#include <benchmark/benchmark.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <vector>

#include "resilient_ccl/auth/sealed_path.h"

namespace faultline::auth {
namespace {

void BM_SealedPath(benchmark::State& state) {
  Authenticator authenticator(JobKey::random());
  SealedPath path;
  const std::vector<std::byte> datagram(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    Seal seal = path.seal(authenticator, datagram);
    benchmark::DoNotOptimize(seal);
  }
}
BENCHMARK(BM_SealedPath)->Arg(64)->Arg(200)->Arg(1400);

void BM_Code(benchmark::State& state, const char* name, const char* digest, std::size_t keyBytes) {
  EVP_MAC* const algorithm = EVP_MAC_fetch(nullptr, name, nullptr);
  EVP_MAC_CTX* const context = algorithm == nullptr ? nullptr : EVP_MAC_CTX_new(algorithm);
  if (context == nullptr) {
    state.SkipWithError("this OpenSSL does not have it");
    return;
  }
  const std::vector<unsigned char> key(keyBytes, 7);
  const std::vector<unsigned char> datagram(static_cast<std::size_t>(state.range(0)));
  const OSSL_PARAM parameters[] = {
      digest == nullptr
          ? OSSL_PARAM_construct_end()
          : OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, const_cast<char*>(digest), 0),
      OSSL_PARAM_construct_end()};
  unsigned char tag[64];
  std::size_t size = 0;
  for (auto _ : state) {
    EVP_MAC_init(context, key.data(), key.size(), parameters);
    EVP_MAC_update(context, datagram.data(), datagram.size());
    EVP_MAC_final(context, tag, &size, sizeof(tag));
    benchmark::DoNotOptimize(tag);
  }
  EVP_MAC_CTX_free(context);
  EVP_MAC_free(algorithm);
}
BENCHMARK_CAPTURE(BM_Code, siphash, "SIPHASH", nullptr, 16)->Arg(200);
BENCHMARK_CAPTURE(BM_Code, blake2s, "BLAKE2SMAC", nullptr, 32)->Arg(200);
BENCHMARK_CAPTURE(BM_Code, blake2b, "BLAKE2BMAC", nullptr, 32)->Arg(200);
BENCHMARK_CAPTURE(BM_Code, hmac_sha256, "HMAC", "SHA256", 32)->Arg(200);

}  // namespace
}  // namespace faultline::auth

BENCHMARK_MAIN();
