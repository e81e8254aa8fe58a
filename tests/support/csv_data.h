#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace faultline::test {

/// The rows of tests/data/`name` below its heading, one field for each of `Fields`: a number, or
/// std::string for the text as it is. Throws std::runtime_error when the file cannot be read or a
/// row is not of these fields.
template <typename... Fields>
std::vector<std::tuple<Fields...>> csvRows(const std::string& name) {
  const std::string path = FAULTLINE_SOURCE_DIR "/tests/data/" + name;
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error(path + " cannot be read");
  std::vector<std::tuple<Fields...>> rows;
  while (std::getline(file, line)) {
    std::istringstream texts(line);
    const auto parse = [&]<typename Field>(Field& field) {
      std::string text;
      std::getline(texts, text, ',');
      if constexpr (std::is_same_v<Field, std::string>) {
        field = text;
      } else {
        std::istringstream number(text);
        if (!(number >> field) || !number.eof()) throw std::runtime_error(path + ": " + line);
      }
    };
    std::apply([&](auto&... fields) { (parse(fields), ...); }, rows.emplace_back());
    if (!texts.eof()) throw std::runtime_error(path + ": more fields in " + line);
  }
  return rows;
}

}  // namespace faultline::test
