#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/executable.h"
#include "base/printable.h"
#include "injector/fault.h"
#include "injector/fault_kind.h"
#include "injector/faults/command_holder.h"
#include "injector/faults/fault_list.h"
#include "injector/netlink/address.h"
#include "injector/netlink/interface.h"
#include "injector/netlink/link_target.h"

namespace faultline::injector {
namespace {

constexpr std::string_view kNoCommand = "none";
constexpr double kShortestLimitSeconds = 0.01;
constexpr double kLongestLimitSeconds = 600;
// For the holder's own work around a command.
constexpr Duration kAroundCommand = 1s;

constexpr std::array<std::string_view, 2> kExternalPlaces{"node", "bench"};
constexpr std::array kExternalParameters{
    ParameterSpec{"apply", ParameterType::kCommand, "",
                  "the command that breaks something. The bench waits for its end: it should be "
                  "short"},
    ParameterSpec{"revert", ParameterType::kCommand, "",
                  "the command that takes it back. It must not mind to find nothing to do: it also "
                  "runs after an apply that failed, and when the bench was killed"},
    ParameterSpec{"evidence", ParameterType::kCommand, "",
                  "the command that proves, while it lasts, that it is broken: it exits with 0 and "
                  "says what it saw. Anything else, also saying nothing, is no evidence. It runs "
                  "once before the measured time, too, and must fail there"},
    ParameterSpec{"prepare", ParameterType::kCommand, kNoCommand,
                  "a command that checks, before the measured time, whether apply can work here"},
    ParameterSpec{
        "where", ParameterType::kEnum, "node",
        "node: in the network namespace of the target's node. bench: in that of the bench",
        kExternalPlaces},
    ParameterSpec{"limit",
                  ParameterType::kDuration,
                  "5s",
                  "the longest that each command may take; then it is killed, and has failed",
                  {},
                  kShortestLimitSeconds,
                  kLongestLimitSeconds},
};

// Only the user knows what the commands break.
constexpr std::array kExternalSignatures{Signature{{kAnyCause}, {kAnyCause}}};

/// The first line of what a command has said, fit for a terminal.
std::string firstLine(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return printable(text.substr(begin, text.find('\n', begin) - begin));
}

/// A fault that a user's commands make. Evidence: what the user's own command says it saw.
class External final : public Fault {
 public:
  External(const FaultParameters& parameters, const netlink::LinkTarget& target)
      : target_(target), limit_(parameters.get<Duration>("limit")) {
    for (std::size_t i = 0; i < kSteps; ++i) {
      const auto& line = parameters.get<std::string>(kStepNames[i]);
      if (line == kNoCommand && static_cast<Step>(i) == Step::kPrepare) continue;
      lines_[i] = line;
      auto words = splitCommand(line);  // it was read before, so it can be split
      if (words.ok()) commands_.words[i] = std::move(*words);
    }
    commands_.limit = limit_;
    if (parameters.get<std::string>("where") == "node" && target.nic.socket != nullptr) {
      commands_.namespace_fd = target.nic.socket->namespaceFd();
    }
  }

  ~External() override {
    const Status status = revert();
    if (!status.ok()) spdlog::error("external: {}", status.message());
  }

  void stopWhen(std::function<bool()> stop) override { stop_ = std::move(stop); }

  Status prepare() override {
    commands_.environment = target_.calledBy;
    if (target_.nic.socket != nullptr) {
      ASSIGN_OR_RETURN(const netlink::NetDevice nic,
                       netlink::readNetDevice(*target_.nic.socket, target_.nic.ifindex));
      commands_.environment.push_back("FAULTLINE_INTERFACE=" + nic.name);
      ASSIGN_OR_RETURN(const std::vector<netlink::Ipv4Address> addresses,
                       netlink::listAddresses(*target_.nic.socket, target_.nic.ifindex));
      if (!addresses.empty()) {
        commands_.environment.push_back("FAULTLINE_ADDRESS=" + addresses.front().toString());
      }
    }
    RETURN_IF_ERROR(startHolder());
    ASSIGN_OR_RETURN(const CommandEnd end, holder_->run(Step::kPrepare, stop_));
    if (!end.ok()) return Status(Code::kUnavailable, whyNot(Step::kPrepare, end));
    return requireWhole();
  }

  Status apply() override {
    if (holder_ == nullptr) return errorf(Code::kInternal, "apply before prepare");
    applied_ = true;  // also if it fails: it may have been half done
    forget();
    return transit(true, [&] { return carryOut(Step::kApply); });
  }

  Status step(TimePoint /*now*/) override {
    if (looking_) {
      ASSIGN_OR_RETURN(evidence_, holder_->ended());
      looking_ = !evidence_;
    }
    const int due = demanded_ ? kLooks : applied_ ? 1 : 0;
    if (looking_ || looks_ >= due || (evidence_ && proves(*evidence_))) return okStatus();
    RETURN_IF_ERROR(holder_->begin(Step::kEvidence));
    evidence_.reset();
    looking_ = true;
    ++looks_;
    return okStatus();
  }

  Status revert() override {
    if (!applied_) return okStatus();
    looking_ = false;  // the holder ends what still looks
    RETURN_IF_ERROR(transit(false, [&] { return takeBack(); }));
    applied_ = false;
    return okStatus();
  }

  std::string mechanism() const override {
    return fmt::format("the user's command: {}", line(Step::kApply));
  }

  Duration evidenceBudget() const override { return kLooks * (limit_ + kAroundCommand); }

 protected:
  bool conclusive() const override { return evidence_ && (proves(*evidence_) || looks_ == kLooks); }

  Status demandEvidence() override {
    if (holder_ == nullptr) return errorf(Code::kInternal, "evidence before prepare");
    demanded_ = true;
    return okStatus();
  }

  Evidence verdict() const override {
    Evidence result{"external", "the user's command", "it has not ended", false};
    if (!evidence_) return result;
    result.observed = firstLine(evidence_->output);
    result.ok = proves(*evidence_);
    if (!evidence_->ok()) {
      result.observed = whyNot(Step::kEvidence, *evidence_);
    } else if (!result.ok) {
      result.observed = fmt::format("evidence: '{}' said nothing: it is to say what it saw",
                                    line(Step::kEvidence));
    }
    return result;
  }

 private:
  static constexpr std::array<std::string_view, kSteps> kStepNames{"prepare", "apply", "evidence",
                                                                   "revert"};

  // The first begins at once, so that the fault's end waits less for it. If it fails, it may have
  // looked too early: once more at the end.
  static constexpr int kLooks = 2;

  static bool proves(const CommandEnd& end) { return end.ok() && !firstLine(end.output).empty(); }

  /// Evidence that is there before the fault would prove nothing.
  Status requireWhole() {
    ASSIGN_OR_RETURN(const CommandEnd end, holder_->run(Step::kEvidence, stop_));
    if (!proves(end)) return okStatus();
    return errorf(Code::kUnavailable,
                  "evidence: '{}' says before anything is broken: {}: it is to fail then, or it "
                  "proves nothing",
                  line(Step::kEvidence), firstLine(end.output));
  }

  void forget() {
    evidence_.reset();
    looks_ = 0;
    looking_ = false;
    demanded_ = false;
  }

  const std::string& line(Step step) const { return lines_[static_cast<std::size_t>(step)]; }

  Status startHolder() {
    holder_.reset();
    ASSIGN_OR_RETURN(holder_, CommandHolder::start(commands_));
    return okStatus();
  }

  Status takeBack() {
    const Status status = carryOut(Step::kRevert);
    if (status.code() != Code::kUnavailable) return status;
    RETURN_IF_ERROR(startHolder());  // somebody has ended it
    return carryOut(Step::kRevert);
  }

  Status carryOut(Step step) {
    const bool reverts = step == Step::kRevert;
    ASSIGN_OR_RETURN(const CommandEnd end, holder_->run(step, reverts ? nullptr : stop_));
    if (end.ok()) return okStatus();
    return Status(reverts ? Code::kNotRestored : Code::kIo, whyNot(step, end));
  }

  std::string whyNot(Step step, const CommandEnd& end) const {
    std::string text =
        fmt::format("{}: '{}' ", kStepNames[static_cast<std::size_t>(step)], line(step));
    if (!end.ran) {
      text += "could not be started";
    } else if (end.timed_out) {
      text += fmt::format("had not ended after its limit of {}, and was killed",
                          formatDuration(limit_));
    } else {
      text += fmt::format("ended with {}", end.code);
    }
    const std::string said = firstLine(end.errors.empty() ? end.output : end.errors);
    return said.empty() ? text : text + ": " + said;
  }

  netlink::LinkTarget target_;
  Duration limit_;
  std::array<std::string, kSteps> lines_;
  HeldCommands commands_;
  std::unique_ptr<CommandHolder> holder_;
  std::function<bool()> stop_;
  bool applied_ = false;

  // Since the last strike.
  std::optional<CommandEnd> evidence_;  ///< of the latest look that has ended
  int looks_ = 0;                       ///< how often `evidence` was begun
  bool looking_ = false;                ///< it runs now
  bool demanded_ = false;               ///< it is waited for
};

}  // namespace

constinit const FaultKind kExternalKind{
    .name = "external",
    .summary = "What commands of your own do, under the same rules of evidence.",
    .sees = "whatever the commands do",
    .evidence =
        "the command 'evidence' fails before, and while it lasts it exits with 0 and says in "
        "a line what it saw",
    .undo =
        "the command 'revert'; a process of its own runs it also when everything else of ours is "
        "killed",
    .parameters = kExternalParameters,
    .signatures = kExternalSignatures,
    .make = makeOne<External>};

}  // namespace faultline::injector
