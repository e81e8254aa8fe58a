#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

namespace faultline::test {

/// Communicators of this process and another one, one after another in a thread of their own, each
/// aborted with messages under way: by the sides in turn, and by the other one when it sees that,
/// or hears of it by an error, as the ranks of a job do. Side s has aborted the n-th when there is
/// a file "abort-n-of-s".
class Aborts {
 public:
  Aborts(std::string library, int version, std::filesystem::path folder, int side)
      : library_(std::move(library)), version_(version), folder_(std::move(folder)), side_(side) {}
  ~Aborts() { stop(); }

  void start();
  /// Aborts the one that there is.
  void stop();
  // When it has stopped.
  int count() const { return count_; }
  /// Of a communicator that nobody had aborted, or bytes that were wrong; empty: none.
  const std::string& error() const { return error_; }

 private:
  void live();
  std::filesystem::path abortOf(int side) const;
  void announce() const;

  const std::string library_;
  const int version_;
  const std::filesystem::path folder_;
  const int side_;
  std::atomic<bool> stops_{false};
  int count_ = 0;
  std::string error_;
  std::thread thread_;
};

}  // namespace faultline::test
