#include "tests/planted/plant.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <utility>

namespace faultline::test {
namespace {

bool isSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && isSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && isSpace(text.back())) text.remove_suffix(1);
  return text;
}

std::string withoutSpace(std::string_view text) {
  std::string dense(text);
  std::erase_if(dense, isSpace);
  return dense;
}

/// `text TEXT` of a place: what stands around the backticks, and between them.
bool readRight(std::string_view text, PlantedPlace& place) {
  if (std::ranges::count(text, '`') != 2) return false;
  const std::size_t first = text.find('`'), last = text.rfind('`');
  place.before = text.substr(0, first);
  place.right = text.substr(first + 1, last - first - 1);
  place.after = text.substr(last + 1);
  return true;
}

/// What is replaced in a source: [begin, end), and by which bugs.
struct Span {
  std::size_t begin = 0, end = 0;
  std::vector<const PlantedPlace*> places;
};

bool isStatement(std::string_view text) {
  return text.empty() || text.ends_with(';') || text.ends_with('}');
}

std::string condition(const PlantedPlace& place) {
  return fmt::format("::faultline::planted::is(::faultline::planted::Bug::k{})", place.bug);
}

std::string switched(std::string_view right, const Span& span) {
  std::string text;
  if (isStatement(right)) {
    for (const PlantedPlace* place : span.places) {
      text += fmt::format("if ({}) {{ {} }} else ", condition(*place), place->wrong);
    }
    return fmt::format("{{ {}{{ {} }} }}", text, right);
  }
  for (const PlantedPlace* place : span.places) {
    text += fmt::format("{} ? ({}) : ", condition(*place), place->wrong);
  }
  return fmt::format("({}({}))", text, right);
}

}  // namespace

Result<PlantedBugs> parsePlantedBugs(std::string_view text) {
  PlantedBugs bugs;
  int number = 0;
  std::string_view expected = "bug";
  const auto wrongLine = [&](std::string_view what) {
    return errorf(Code::kInvalidArgument, "line {}: {}", number, what);
  };
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const std::string_view word = line.substr(0, line.find(' '));
    const std::string_view rest = trimmed(line.substr(word.size()));
    const bool another = expected == "bug" && word == "in" && !bugs.places.empty();
    if (word != expected && !another) {
      return wrongLine(fmt::format("'{}' where '{}' was expected", word, expected));
    }
    if (word == "bug") {
      if (rest.empty() ||
          !std::ranges::all_of(rest, [](unsigned char c) { return std::isalnum(c); })) {
        return wrongLine("a bug's name consists of letters and digits");
      }
      if (std::ranges::find(bugs.names, rest) != bugs.names.end()) {
        return wrongLine(fmt::format("there is a bug {} already", rest));
      }
      bugs.names.emplace_back(rest);
      expected = "in";
    } else if (word == "in") {
      bugs.places.push_back({.bug = bugs.names.back(), .file = std::string(rest)});
      expected = "right";
    } else if (word == "right") {
      if (!readRight(rest, bugs.places.back())) {
        return wrongLine("backticks must enclose what is replaced");
      }
      expected = "wrong";
    } else {
      PlantedPlace& place = bugs.places.back();
      place.wrong = rest;
      const bool fits = isStatement(place.right)
                            ? isStatement(place.wrong)
                            : !place.wrong.empty() && place.wrong.back() != ';';
      if (!fits) {
        return wrongLine("a statement is replaced by a statement, an expression by an expression");
      }
      expected = "bug";
    }
  }
  if (expected != "bug") return wrongLine(fmt::format("'{}' is missing at the end", expected));
  return bugs;
}

Result<std::string> plantInto(std::string_view source, const std::string& file,
                              const PlantedBugs& bugs) {
  // Without white space, so that a line may be broken elsewhere; and where each character came
  // from.
  std::string dense;
  std::vector<std::size_t> origin;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (isSpace(source[i])) continue;
    dense += source[i];
    origin.push_back(i);
  }
  std::vector<Span> spans;
  for (const PlantedPlace& place : bugs.places) {
    if (place.file != file) continue;
    const std::string before = withoutSpace(place.before), right = withoutSpace(place.right);
    const std::string whole = before + right + withoutSpace(place.after);
    const std::size_t found = whole.empty() ? std::string::npos : dense.find(whole);
    const auto wrongPlace = [&](std::string_view what) {
      return errorf(Code::kInvalidArgument,
                    "bug {}: {}: {}: {}`{}`{}\nAfter a change of that source, make the entry in "
                    "tests/planted/bugs.txt name the line that has its part now",
                    place.bug, file, what, place.before, place.right, place.after);
    };
    if (found == std::string::npos) return wrongPlace("this text is not there any more");
    if (dense.find(whole, found + 1) != std::string::npos) {
      return wrongPlace("this text is there twice");
    }
    const std::size_t first = found + before.size();
    Span span;
    if (right.empty()) {
      span.begin = span.end = first == 0 ? 0 : origin[first - 1] + 1;
    } else {
      span.begin = origin[first];
      span.end = origin[first + right.size() - 1] + 1;
    }
    span.places.push_back(&place);
    const auto same = std::ranges::find_if(spans, [&](const Span& other) {
      return other.begin == span.begin && other.end == span.end;
    });
    if (same != spans.end()) {
      same->places.push_back(&place);
      continue;
    }
    for (const Span& other : spans) {
      if (span.begin < other.end && other.begin < span.end) {
        return wrongPlace(fmt::format("overlaps what bug {} replaces", other.places[0]->bug));
      }
    }
    spans.push_back(std::move(span));
  }
  // A statement may come to stand in the line of another one that an `if` guards.
  std::string text = fmt::format(
      "#include \"planted_bugs.h\"\n#pragma GCC diagnostic ignored \"-Wmisleading-indentation\"\n"
      "#line 1 \"{}\"\n",
      file);
  std::ranges::sort(spans, {}, &Span::begin);
  std::size_t copied = 0;
  for (const Span& span : spans) {
    text += source.substr(copied, span.begin - copied);
    text += switched(source.substr(span.begin, span.end - span.begin), span);
    copied = span.end;
  }
  text += source.substr(copied);
  return text;
}

std::string plantedHeader(const PlantedBugs& bugs) {
  std::string enumerators, names;
  for (const std::string& name : bugs.names) {
    enumerators += fmt::format("  k{},\n", name);
    names += fmt::format("    {{Bug::k{0}, \"{0}\"}},\n", name);
  }
  return fmt::format(R"(// Made from tests/planted/bugs.txt.
#pragma once

namespace faultline::planted {{

enum class Bug {{
  kNone,
{}}};

struct NamedBug {{
  Bug bug;
  const char* name;
}};
inline constexpr NamedBug kBugs[] = {{
{}}};

/// The bug that is there now.
inline Bug chosen = Bug::kNone;
inline bool is(Bug bug) {{ return bug == chosen; }}

}}  // namespace faultline::planted
)",
                     enumerators, names);
}

}  // namespace faultline::test
