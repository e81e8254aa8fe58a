#pragma once

// Which sanitizers this is built with: gcc says it with macros of its own, clang with a feature.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FAULTLINE_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define FAULTLINE_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(FAULTLINE_ADDRESS_SANITIZER)
#define FAULTLINE_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__) && !defined(FAULTLINE_THREAD_SANITIZER)
#define FAULTLINE_THREAD_SANITIZER 1
#endif
