#include "resilient_ccl/auth/openssl_library.h"

#include <openssl/crypto.h>
#include <openssl/provider.h>

namespace faultline::auth {

ossl_lib_ctx_st* opensslLibrary() {
  static OSSL_LIB_CTX* const own = []() -> OSSL_LIB_CTX* {
    OSSL_LIB_CTX* const made = OSSL_LIB_CTX_new();
    if (made == nullptr || OSSL_PROVIDER_load(made, "default") == nullptr) return nullptr;
    return made;
  }();
  return own;
}

}  // namespace faultline::auth
