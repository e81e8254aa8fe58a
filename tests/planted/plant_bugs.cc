#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/atomic_file.h"
#include "tests/planted/plant.h"

// plant_bugs BUGS CHECKOUT FOLDER: copies of the sources that BUGS names, with its bugs, and the
// header that they include, into FOLDER. The build calls it.

namespace faultline::test {
namespace {

namespace fs = std::filesystem;

Result<std::string> read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return errorf(Code::kNotFound, "cannot read {}", file.string());
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Status write(const fs::path& file, const std::string& text) {
  std::error_code error;  // writing says it better
  fs::create_directories(file.parent_path(), error);
  return writeFileAtomically(file.string(), text, Sync::kNo);
}

Status plantAll(const fs::path& list, const fs::path& checkout, const fs::path& folder) {
  ASSIGN_OR_RETURN(const std::string text, read(list));
  Result<PlantedBugs> bugs = parsePlantedBugs(text);
  if (!bugs.ok()) return bugs.status().withContext(list.string());
  std::set<std::string> files;
  for (const PlantedPlace& place : bugs->places) files.insert(place.file);
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string source, read(checkout / file));
    ASSIGN_OR_RETURN(const std::string copy, plantInto(source, file, *bugs));
    RETURN_IF_ERROR(write(folder / file, copy));
  }
  return write(folder / "planted_bugs.h", plantedHeader(*bugs));
}

}  // namespace
}  // namespace faultline::test

int main(int count, char** arguments) {
  if (count != 4) {
    std::fputs("usage: plant_bugs BUGS CHECKOUT FOLDER\n", stderr);
    return EXIT_FAILURE;
  }
  const faultline::Status status =
      faultline::test::plantAll(arguments[1], arguments[2], arguments[3]);
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "plant_bugs: %s\n", status.message().c_str());
  return EXIT_FAILURE;
}
