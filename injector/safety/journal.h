#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "injector/safety/entry.h"

namespace faultline::safety {

inline constexpr std::string_view kJournalPath = "/var/lib/faultline/journal";

/// A strike's place on the disk: what a process has changed is known there before it changes it.
class Records {
 public:
  virtual ~Records() = default;
  /// As write(), of one that is not there yet: kAlreadyExists where it is. With the journal's lock.
  /// Leaves room for what write() may add.
  virtual Status create(const Entry& entry) = 0;
  /// Returns when it would survive the end of the machine. kUnsupported, and what was there
  /// stays, for one that is larger than what is read.
  virtual Status write(const Entry& entry) = 0;
  /// ok when it is not there.
  virtual Status remove(const std::string& id) = 0;
};

/// What a journal holds.
struct Kept {
  std::vector<Entry> entries{};  ///< oldest first
  struct Strange {
    std::string path;
    std::string why;
    bool damaged = false;  ///< by its name it is an entry: something may be left that nobody undoes
  };
  std::vector<Strange> strange{};  ///< what is not read, and left alone
};

/// A folder with a file for each strike.
class Journal final : public Records {
 public:
  /// Makes the folder where it is not there. kPermissionDenied when others than root may change
  /// it: what is in it says what root undoes, and with which command.
  static Result<Journal> open(const std::string& folder);
  /// One that is only looked at, by whomever; where there is no folder, it is empty.
  static Journal look(const std::string& folder) { return Journal(folder); }

  Status create(const Entry& entry) override;
  Status write(const Entry& entry) override;
  Status remove(const std::string& id) override;
  Result<Kept> read() const;

  /// Held while it is decided whether a strike may be, and while one that was left is undone. Ends
  /// with the descriptor, also when its process is killed.
  Result<UniqueFd> lock(Duration patience) const;

  /// The file that a fault service claims: one service for a journal.
  std::string serviceFile() const;

  const std::string& folder() const { return folder_; }

 private:
  explicit Journal(std::string folder) : folder_(std::move(folder)) {}
  std::string pathOf(const std::string& id) const;
  Status put(const Entry& entry, std::size_t mostBytes) const;
  Status sync() const;

  std::string folder_;
};

/// The number of this boot; empty where the kernel does not tell.
std::string currentBoot();

/// The process, with its start; `started` is 0 when there is none.
Holder holderOf(pid_t pid);

/// Whether a process is stopped (SIGSTOP, or by a debugger): it gets no signal but SIGKILL.
bool isStopped(pid_t pid);

/// Whether the holder still lives. Of another boot it does not.
bool isHeld(const Entry& entry);

}  // namespace faultline::safety
