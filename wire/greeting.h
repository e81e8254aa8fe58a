#pragma once

#include <string_view>

/// What an agent says first where it speaks over its standard output: one line, the mark, the
/// version of the program and kAgentVersion, with a space between them. Whatever comes before it is
/// not the agent's (a shell's banner, say). Messages follow the line's end.
namespace faultline::wire {

inline constexpr std::string_view kGreetingMark =
    "\x01"
    "faultline-agent ";

}  // namespace faultline::wire
