#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

// String literals of our own sources, for tests of what no text may name.
namespace faultline::test {

struct SourceLiteral {
  std::string file;  ///< from the root of the repository
  int line = 0;
  /// As it is written, but with a blank for \n, \t and \r; what the compiler joins is one.
  std::string text;
};

inline bool isWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Whether the word is in the text, and not only as a part of a longer one.
inline bool hasWord(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !isWordCharacter(text[at - 1])) &&
        (end == text.size() || !isWordCharacter(text[end]))) {
      return true;
    }
  }
  return false;
}

/// Literals of C++ sources, raw ones too; not those of comments and of #include.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  std::vector<SourceLiteral> read(const std::string& file) {
    std::vector<SourceLiteral> all;
    bool goes_on = false;  // nothing but blanks and comments since the last one
    const auto add = [&](int line, const std::string& text) {
      if (goes_on) {
        all.back().text += text;
      } else {
        all.push_back({file, line, text});
      }
      goes_on = true;
    };
    while (at_ < text_.size()) {
      const int line = line_;
      if (starts("//") || (atLineStart() && starts("#include"))) {
        skipTo("\n");
      } else if (starts("/*")) {
        skipTo("*/");
      } else if (starts("R\"") && (at_ == 0 || !isWordCharacter(text_[at_ - 1]))) {
        const std::size_t open = text_.find('(', at_);
        const std::string close = ")" + std::string(text_.substr(at_ + 2, open - at_ - 2)) + "\"";
        const std::size_t end = text_.find(close, open);
        add(line, std::string(text_.substr(open + 1, end - open - 1)));
        skipTo(close);
      } else if (starts("\"")) {
        add(line, quoted('"'));
      } else if (starts("'") && (at_ == 0 || !isWordCharacter(text_[at_ - 1]))) {
        quoted('\'');  // a character, and not the mark in 1'000
        goes_on = false;
      } else {
        goes_on = goes_on && std::isspace(static_cast<unsigned char>(text_[at_])) != 0;
        forward(1);
      }
    }
    return all;
  }

 private:
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool atLineStart() const { return at_ == 0 || text_[at_ - 1] == '\n'; }
  void forward(std::size_t count) {
    for (; count > 0 && at_ < text_.size(); --count) line_ += text_[at_++] == '\n' ? 1 : 0;
  }
  /// Behind the next one.
  void skipTo(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    forward((found == std::string_view::npos ? text_.size() : found + end.size()) - at_);
  }
  std::string quoted(char quote) {
    const std::size_t begin = at_ + 1;
    forward(1);
    while (at_ < text_.size() && text_[at_] != quote) forward(text_[at_] == '\\' ? 2 : 1);
    std::string text(text_.substr(begin, at_ - begin));
    forward(1);
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      if (text[i] != '\\') continue;
      if (std::string_view("ntr").find(text[i + 1]) != std::string_view::npos) {
        text.replace(i, 2, " ");
      } else {
        ++i;
      }
    }
    return text;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

/// All of the sources (.cc, .h) in this folder of the repository.
inline std::vector<SourceLiteral> sourceLiterals(const std::string& folder) {
  namespace fs = std::filesystem;
  const fs::path root = FAULTLINE_SOURCE_DIR;
  std::vector<SourceLiteral> all;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    if (entry.path().extension() != ".cc" && entry.path().extension() != ".h") continue;
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    const std::string source = text.str();
    for (SourceLiteral& literal :
         LiteralReader(source).read(fs::relative(entry.path(), root).string())) {
      all.push_back(std::move(literal));
    }
  }
  return all;
}

}  // namespace faultline::test
