#include "harness/scenario/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.h"
#include "harness/scenario/document.h"
#include "harness/scenario/vocabulary.h"

namespace faultline::scenario {
namespace {

/// A value of the right type for a parameter whose own value cannot be had.
ParameterValue standIn(const ParameterSpec& spec) {
  if (!spec.defaultText.empty()) {
    if (auto value = parseParameter(spec, spec.defaultText); value.ok()) return *std::move(value);
  }
  switch (spec.type) {
    case ParameterType::kDuration:
      return Duration::zero();
    case ParameterType::kPercent:
    case ParameterType::kRateOrPercent:
      return Percent{};
    case ParameterType::kRate:
      return Rate{};
    case ParameterType::kInteger:
      return std::int64_t{0};
    case ParameterType::kSize:
      return Size{};
    case ParameterType::kDecimal:
      return 0.0;
    case ParameterType::kFlag:
      return false;
    case ParameterType::kEnum:
      return std::string(spec.choices.front());
    case ParameterType::kText:
    case ParameterType::kCommand:
    case ParameterType::kName:
      return std::string();
  }
  return std::string();
}

bool isNumber(const std::string& text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  return error == std::errc() && end == last;
}

/// Editors and other YAML readers see a number, a flag or nothing where plain text looks so.
bool looksUntyped(const Node& node) {
  return !node.quoted && (isNumber(node.text) || node.text == "true" || node.text == "false");
}

std::string article(const ParameterSpec& spec) {
  switch (spec.type) {
    case ParameterType::kEnum:
      return "one of " + join(spec.choices, ", ");
    case ParameterType::kFlag:
      return "true or false";
    case ParameterType::kText:
      return "text";
    case ParameterType::kInteger:
      return "a whole number";
    case ParameterType::kDecimal:
      return "a number";
    case ParameterType::kPercent:
      return "a percentage";
    default:
      return fmt::format("a {}", typeName(spec.type));
  }
}

}  // namespace

std::string joinPath(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

ParameterValue RecordReader::readScalar(const Node& node, const ParameterSpec& spec,
                                        const std::string& path) {
  const auto wrong = [&](std::string message) {
    findings_.addAt(path, node.where, std::move(message));
    return standIn(spec);
  };
  if (node.kind == Node::Kind::kNull && std::ranges::count(spec.choices, kNullWord) > 0) {
    return std::string(kNullWord);
  }
  if (node.kind == Node::Kind::kNull) {
    return wrong(fmt::format("{}: has no value; {} is expected", spec.name, article(spec)));
  }
  if (node.kind != Node::Kind::kScalar) {
    return wrong(
        fmt::format("{}: {} is expected, not {}", spec.name, article(spec), describe(node)));
  }
  const bool untyped = spec.type == ParameterType::kInteger ||
                       spec.type == ParameterType::kDecimal || spec.type == ParameterType::kFlag;
  if (untyped && node.quoted) {
    return wrong(fmt::format("{}: {} is text because of its quotes; {} is expected", spec.name,
                             describe(node), article(spec)));
  }
  const bool text = spec.type == ParameterType::kText || spec.type == ParameterType::kName ||
                    spec.type == ParameterType::kCommand;
  if (text && looksUntyped(node)) {
    return wrong(fmt::format("{}: {} is not text; write it in quotes if it is meant so", spec.name,
                             describe(node)));
  }
  const auto planned = plannedWords(path);
  if (std::find(planned.begin(), planned.end(), node.text) != planned.end()) {
    return wrong(fmt::format("{}: '{}' is not available in this version; {} is", spec.name,
                             node.text, join(spec.choices, ", ")));
  }
  Result<ParameterValue> value = parseParameter(spec, node.text);
  if (value.ok()) return *std::move(value);
  if (spec.type == ParameterType::kEnum) {
    return wrong(fmt::format("{}: {} is not one of {}{}", spec.name, describe(node),
                             join(spec.choices, ", "), didYouMean(node.text, spec.choices)));
  }
  // A message of the parser quotes the whole text; keep it one line of bearable length.
  constexpr std::size_t kLongestQuoted = 60;
  if (node.text.size() > kLongestQuoted || node.text.find('\n') != std::string::npos) {
    return wrong(
        fmt::format("{}: {} is expected, not {}", spec.name, article(spec), describe(node)));
  }
  return wrong(value.status().message());
}

std::vector<ParameterValue> RecordReader::readList(const Node* node, const Record& record,
                                                   std::string_view key, const std::string& path,
                                                   std::size_t most) {
  const ParameterSpec& spec = std::ranges::find_if(record.fields, [&](const Field& one) {
                                return one.spec.name == key;
                              })->spec;
  std::vector<ParameterValue> otherwise;
  if (!spec.defaultText.empty()) otherwise.push_back(*parseParameter(spec, spec.defaultText));
  const Node* const list = node == nullptr ? nullptr : node->find(key);
  const std::string at = joinPath(path, key);
  if (list == nullptr) return otherwise;
  if (list->kind != Node::Kind::kList) return {readScalar(*list, spec, at)};
  std::vector<ParameterValue> values;
  for (const Node& item : list->items) {
    values.push_back(readScalar(item, spec, at));
    if (std::ranges::count(values, values.back()) > 1 && findings_.usable({at})) {
      findings_.addAt(at, item.where, fmt::format("{}: {} is listed twice", key, describe(item)));
    }
  }
  if (values.empty() || values.size() > most) {
    findings_.addAt(at, list->where, fmt::format("{}: a list of 1 to {} is expected", key, most));
    return otherwise;
  }
  return values;
}

std::vector<std::string> RecordReader::readWords(const Node& node, std::string_view key,
                                                 const std::string& path) {
  if (node.kind != Node::Kind::kList || node.items.empty() || node.items.size() > kMostElements) {
    findings_.addAt(path, node.where,
                    fmt::format("{}: a list of 1 to {} texts is expected, like [iperf3, -s], not "
                                "{}; for a shell write [sh, -c, 'text']",
                                key, kMostElements, describe(node)));
    return {};
  }
  std::vector<std::string> words;
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::kScalar) {
      findings_.addAt(path, item.where,
                      fmt::format("{}: text is expected, not {}", key, describe(item)));
    }
    words.push_back(item.text);
  }
  return words;
}

std::map<std::string, std::string> RecordReader::readTexts(const Node& node, std::string_view key,
                                                           const std::string& path) {
  std::map<std::string, std::string> texts;
  if (node.kind != Node::Kind::kMap) {
    findings_.addAt(
        path, node.where,
        fmt::format("{}: a mapping like {{NAME: value}} is expected, not {}", key, describe(node)));
    return texts;
  }
  for (const Entry& entry : node.entries) {
    if (entry.key.empty() || entry.key.find_first_of(std::string("=\0", 2)) != std::string::npos) {
      findings_.addAt(path, entry.where,
                      fmt::format("{}: '{}' is no name of a variable", key, shortened(entry.key)));
    } else if (entry.value.kind != Node::Kind::kScalar) {
      findings_.addAt(path, entry.value.where,
                      fmt::format("{}: {}: text is expected, not {}", key, shortened(entry.key),
                                  describe(entry.value)));
    } else {
      texts[entry.key] = entry.value.text;
    }
  }
  return texts;
}

void RecordReader::refuseUnknownKeys(const Node& node, std::span<const std::string_view> known,
                                     const std::string& path) {
  for (const Entry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    const std::string owner = path.empty() ? "" : fmt::format(" in '{}'", path);
    findings_.add(entry.where, fmt::format("unknown key '{}'{}{}", shortened(entry.key), owner,
                                           suggestion(entry.key, known)));
  }
}

void RecordReader::read(const Node* node, Location where, const Record& record,
                        const std::string& path, Parameters& values,
                        std::span<const ParameterSpec> extra) {
  readInto(node, where, record, path, "", values, extra);
}

void RecordReader::readInto(const Node* node, Location where, const Record& record,
                            const std::string& path, const std::string& prefix, Parameters& values,
                            std::span<const ParameterSpec> extra) {
  if (node != nullptr && node->kind != Node::Kind::kMap) {
    findings_.addAt(path, node->where,
                    path.empty()
                        ? fmt::format("a scenario is a mapping of keys like 'version: 1', "
                                      "not {}",
                                      describe(*node))
                        : fmt::format("{}: a mapping is expected, not {}", path, describe(*node)));
    node = nullptr;
  }
  const bool broken = !findings_.usable({path});
  if (node != nullptr) {
    std::vector<std::string_view> known;
    for (const Field& field : record.fields) known.push_back(field.spec.name);
    for (const ParameterSpec& spec : extra) known.push_back(spec.name);
    refuseUnknownKeys(*node, known, path);
  }
  for (const Field& field : record.fields) {
    const std::string field_path = joinPath(path, field.spec.name);
    const Node* const value = node == nullptr ? nullptr : node->find(field.spec.name);
    const std::string name = prefix + std::string(field.spec.name);
    if (value == nullptr && field.required && !broken) {
      const std::string owner = path.empty() ? "the scenario" : fmt::format("'{}'", path);
      findings_.addAt(
          field_path, node == nullptr ? where : node->where,
          fmt::format("{} needs the key '{}': {}", owner, field.spec.name, field.spec.meaning));
    }
    if (field.shape == Shape::kRecord) {
      // A mapping that is missing and has no required keys is all defaults; one that has (a fault's
      // target) is then simply absent.
      bool all_defaults = true;
      for (const Field& inner : field.record->fields)
        all_defaults = all_defaults && !inner.required;
      if (value == nullptr && !field.required && !all_defaults) continue;
      readInto(value, value == nullptr ? where : value->where, *field.record, field_path,
               name + ".", values, {});
    } else if (field.shape == Shape::kScalar) {
      if (value != nullptr) {
        values.set(name, readScalar(*value, field.spec, field_path));
      } else if (field.required || !field.spec.defaultText.empty()) {
        values.set(name, standIn(field.spec));
      }
    }
  }
}

Parameters RecordReader::readParameters(const Node* node, Location where, std::string_view owner,
                                        std::span<const ParameterSpec> specs,
                                        const std::string& path) {
  Parameters values;
  for (const ParameterSpec& spec : specs) {
    const std::string spec_path = joinPath(path, spec.name);
    const Node* const value = node == nullptr ? nullptr : node->find(spec.name);
    if (value != nullptr) {
      values.set(std::string(spec.name), readScalar(*value, spec, spec_path));
      continue;
    }
    if (spec.required()) {
      findings_.addAt(spec_path, where,
                      fmt::format("{} needs the key '{}': {}", owner, spec.name, spec.meaning));
    }
    values.set(std::string(spec.name), standIn(spec));
  }
  return values;
}

}  // namespace faultline::scenario
