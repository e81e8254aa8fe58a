#pragma once

#include <cstdint>

namespace faultline::injector::verbs::shim {

using Word = std::uintptr_t;
/// Any function of libibverbs: every argument and result is an integer or a pointer, and there are
/// at most six, which are passed in registers.
using Function = Word(Word, Word, Word, Word, Word, Word);

}  // namespace faultline::injector::verbs::shim

/// Of a function that calls one as Function. Clang's check of indirect calls looks for a type that
/// C libraries do not record.
#ifdef __clang__
#define FAULTLINE_UNTYPED_CALL __attribute__((no_sanitize("function")))
#else
#define FAULTLINE_UNTYPED_CALL
#endif
