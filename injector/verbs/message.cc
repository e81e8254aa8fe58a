#include "injector/verbs/message.h"

#include <algorithm>
#include <charconv>

namespace faultline::injector::verbs {
namespace {

constexpr std::string_view kName = "faultline-verbs ";
/// The only key that may come several times.
constexpr std::string_view kRepeated = "qp";

bool isWord(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

bool isPrintable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

/// The text up to the next end of line, which is taken off; nothing when there is none.
std::optional<std::string_view> takeLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

Status malformed(std::string_view what) {
  return errorf(Code::kInvalidArgument, "not a message of the verbs shim: {}", what);
}

}  // namespace

Result<Message> Message::parse(std::string_view packet) {
  if (packet.size() > kMostBytes) return malformed("it is too long");
  const auto first = takeLine(packet);
  if (!first || !first->starts_with(kName)) return malformed("its first line is another one");
  std::string_view rest = first->substr(kName.size());
  const std::size_t blank = rest.find(' ');
  if (blank == std::string_view::npos) return malformed("it has no verb");
  if (rest.substr(0, blank) != std::to_string(kVersion)) {
    return errorf(Code::kUnsupported,
                  "the other side speaks another version of the protocol than {}: use the shim and "
                  "the program of the same build",
                  kVersion);
  }
  rest.remove_prefix(blank + 1);
  if (!isWord(rest)) return malformed("its verb is no word");
  Message message{std::string(rest)};
  std::size_t keys = 0;
  while (!packet.empty()) {
    const auto line = takeLine(packet);
    if (!line) return malformed("its last line has no end");
    const std::size_t equals = line->find('=');
    if (equals == std::string_view::npos) return malformed("a line has no '='");
    const std::string_view key = line->substr(0, equals);
    const std::string_view value = line->substr(equals + 1);
    if (!isWord(key) || !isPrintable(value)) return malformed("a field has strange characters");
    if (key != kRepeated) {
      if (++keys > kMostKeys) return malformed("it has too many fields");
      if (message.find(key)) return malformed("a field comes twice");
    }
    message.add(key, value);
  }
  return message;
}

std::string Message::serialize() const {
  std::string text = fmt::format("{}{} {}\n", kName, kVersion, verb_);
  for (const auto& [key, value] : fields_) text += fmt::format("{}={}\n", key, value);
  return text;
}

void Message::add(std::string_view key, std::string_view value) {
  std::string clean(value);
  // Error texts of the system may hold anything.
  std::ranges::replace_if(
      clean, [](char c) { return c < ' ' || c > '~'; }, '?');
  fields_.emplace_back(std::string(key), std::move(clean));
}

std::optional<std::string_view> Message::find(std::string_view key) const {
  for (const auto& [name, value] : fields_) {
    if (name == key) return value;
  }
  return std::nullopt;
}

Result<std::uint64_t> Message::number(std::string_view key, std::uint64_t most) const {
  const auto text = find(key);
  if (!text) return errorf(Code::kInvalidArgument, "the field '{}' is missing", key);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (text->empty() || error != std::errc{} || end != text->data() + text->size() || value > most) {
    return errorf(Code::kInvalidArgument, "the field '{}' is no number up to {}", key, most);
  }
  return value;
}

}  // namespace faultline::injector::verbs
