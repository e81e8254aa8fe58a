#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace faultline {

/// Bytes of the UTF-8 sequence at the beginning of a text that is not empty; 0 when it is none
/// (Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t utf8Length(std::string_view text);

/// Whether the sequence at the beginning of a text commands a terminal or reorders what is shown:
/// a control character of ASCII, but for tab, line feed and carriage return, or of Latin-1 (C1), a
/// mark of direction, or a line separator. `length` as utf8Length says.
bool isCommand(std::string_view text, std::size_t length);

/// Text of programs, users, files and peers as a terminal may get it: what commands the terminal,
/// carriage returns, and bytes that are no UTF-8 are shown as `\x1b` or `\u202e`. Every line that
/// has such text in it goes through this when it is printed or logged.
std::string printable(std::string_view text);

/// The same for a message that quotes what users, files or programs have said: a word of more than
/// 400 bytes loses its middle, and so does a message of more than 8000.
std::string printableMessage(std::string_view text);

/// The same for a JSON document, which stays the same document.
std::string printableJson(std::string_view json);

}  // namespace faultline
