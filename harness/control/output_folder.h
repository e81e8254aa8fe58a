#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>

#include "base/claimed_folder.h"
#include "base/made_entries.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "harness/scenario/scenario.h"
#include "reports/result.h"

namespace faultline::run {

/// The folder, in that of an experiment, of what measures a rail.
inline constexpr const char* kGoodputFolder = "goodput";

/// The names of the folders that the runs of a scenario make in its output folder.
std::set<std::string> runFoldersOf(const scenario::Scenario& scenario);
std::string checkpointsFolder(int block);
std::string commandFolder(const std::string& strategy, int block);

/// Whether an experiment can have made an entry of this name and kind in its folder.
bool isOfExperiment(const std::string& name, mode_t mode);

/// The folder that an experiment writes into: of one experiment at a time. Follows no symbolic
/// link, and replaces and removes nothing but what the folder's record says that an earlier
/// experiment made (MadeEntries). Of a result that is older than records, files are replaced by
/// name, and nothing is removed.
class OutputFolder {
 public:
  /// The folder must exist. `needed` are the names of the folders that will be made in it.
  /// kAlreadyExists when another experiment is writing into it and still is after two seconds (one
  /// that was killed takes a moment to be gone), when it has an earlier result (kRefused), or when
  /// something that is not of an experiment has a name that this one needs. kInvalidArgument for a
  /// symbolic link. kIo when it cannot be written. What an experiment left that was killed is
  /// removed. An earlier result stays until the new one is whole.
  static Result<OutputFolder> claim(const std::string& path, Earlier earlier = Earlier::kRefused,
                                    const std::set<std::string>& needed = {});

  /// Whether `claim` could succeed, without changing anything. A folder that is not there can be
  /// made.
  static Status check(const std::string& path, Earlier earlier,
                      const std::set<std::string>& needed = {});

  /// Where to write: the folder, or one in it while an earlier result is still there.
  const std::string& path() const { return path_; }
  std::string absolutePath() const;
  std::string logPath() const { return path_ + "/log.txt"; }
  /// Whether an earlier result is there that the new one is to replace.
  bool replaces() const { return path_ != final_; }

  /// Makes an empty folder in `path`; one of that name that this experiment made goes.
  Status makeFolder(const std::string& name);
  /// Removes it.
  Status removeFolder(const std::string& name);
  /// Writes all files of the result.
  Status render(const reports::ScenarioResult& result);
  /// Puts the new result, which is whole, into the place of the earlier one.
  Status replaceEarlier();

 private:
  /// What is in a folder that this experiment would use.
  struct Content {
    MadeEntries record;
    bool result = false;          ///< a result of an earlier experiment
    std::set<std::string> older;  ///< its files, where it is older than records
  };
  OutputFolder(std::string path, UniqueFd lock, MadeEntries record)
      : final_(std::move(path)),
        path_(final_),
        lock_(std::move(lock)),
        record_(std::move(record)) {}
  static Result<Content> look(const std::string& path, int folder,
                              const std::set<std::string>& needed);
  static Status judge(const std::string& path, const Content& content, Earlier earlier);
  static Status removeMade(const std::string& path, int folder, MadeEntries& record,
                           const std::set<std::string>& but);
  Status beginBeside();
  MadeEntries& recordOfPath() { return beside_ ? *beside_ : record_; }

  std::string final_;
  std::string path_;
  /// The folder. It carries the lock, which must not be held by ranks that outlive us by a moment.
  UniqueFd lock_;
  MadeEntries record_;
  std::optional<MadeEntries> beside_;  ///< of the folder for the new result
};

}  // namespace faultline::run
