#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace faultline::testing {

/// What a program left behind.
struct Ran {
  int exit = -1;  ///< its exit code; 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

/// A folder of the test's own, removed with everything in it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(
      const std::filesystem::path& in = std::filesystem::temp_directory_path()) {
    std::string pattern = (in / "faultline-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file into the folder and returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

/// Runs `program` with `arguments`, stdin empty, in the folder `in`, and waits for its end. Output
/// goes through files, so that no amount of it can block.
inline Ran runProgram(const std::string& program, const std::vector<std::string>& arguments,
                      const std::string& in = ".") {
  const TemporaryFolder folder;
  const std::string out = folder.path() / "out", err = folder.path() / "err";
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    constexpr int kMode = 0600;
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    if (::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO) < 0 ||
        ::dup2(::open(out.c_str(), flags, kMode), STDOUT_FILENO) < 0 ||
        ::dup2(::open(err.c_str(), flags, kMode), STDERR_FILENO) < 0 || ::chdir(in.c_str()) != 0) {
      ::_exit(126);
    }
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  const auto text = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text(out), text(err)};
}

/// Runs the program that this build made.
inline Ran runFaultline(const std::vector<std::string>& arguments, const std::string& in = ".") {
  return runProgram(std::string(FAULTLINE_BINARY_DIR) + "/faultline", arguments, in);
}

}  // namespace faultline::testing
