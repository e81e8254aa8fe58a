#pragma once

struct ossl_lib_ctx_st;

namespace faultline::auth {

/// OpenSSL's algorithms in a context of our own, which reads no configuration: a host's
/// OPENSSL_CONF that allows only what FIPS approves has neither SipHash nor X25519. Null where
/// OpenSSL cannot make one. Lives as long as the process.
ossl_lib_ctx_st* opensslLibrary();

/// Asks for the algorithm in any provider of that context.
inline constexpr const char* kAnyProvider = "provider=default,-fips";

}  // namespace faultline::auth
