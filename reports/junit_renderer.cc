#include <fmt/format.h>
#include <tinyxml2.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "reports/after_fault_text.h"
#include "reports/renderer.h"
#include "reports/text.h"
#include "reports/verdict_text.h"

namespace faultline::reports {
namespace {

std::string seconds(double ms) { return fmt::format("{:.3f}", ms / kMillisecondsPerSecond); }

/// How many cases there are of each kind.
struct Counts {
  int tests = 0;
  int failures = 0;
  int errors = 0;
  int skipped = 0;

  void add(const Counts& other) {
    tests += other.tests;
    failures += other.failures;
    errors += other.errors;
    skipped += other.skipped;
  }
  void write(tinyxml2::XMLElement* element) const {
    element->SetAttribute("tests", tests);
    element->SetAttribute("failures", failures);
    element->SetAttribute("errors", errors);
    element->SetAttribute("skipped", skipped);
  }
};

/// A suite that counts its cases. A *failure* is a wrong result of what was tested; an *error* is a
/// test that could not be made; *skipped* is one that nobody tried to make. CI systems show them
/// apart.
class Suite {
 public:
  Suite(tinyxml2::XMLElement* root, const std::string& name, const ScenarioResult& result)
      : element_(root->InsertNewChildElement("testsuite")),
        name_(cleanText(name)),
        file_(cleanText(result.scenario_file)) {
    element_->SetAttribute("name", name_.c_str());
    if (!result.started_at.empty()) {
      element_->SetAttribute("timestamp", cleanText(result.started_at).c_str());
    }
    addFile(element_);
  }

  void pass(const std::string& name, double ms = 0) { addCase(name, ms); }
  void fail(const std::string& name, const std::string& type, const std::string& message,
            double ms = 0) {
    addProblem(name, "failure", type, message, ms);
    ++counts_.failures;
  }
  void error(const std::string& name, const std::string& type, const std::string& message,
             double ms = 0) {
    addProblem(name, "error", type, message, ms);
    ++counts_.errors;
  }
  /// Of the case that was added last.
  void properties(const std::vector<std::pair<const char*, std::string>>& properties) {
    if (properties.empty()) return;
    tinyxml2::XMLElement* list = element_->GetDocument()->NewElement("properties");
    element_->LastChildElement("testcase")->InsertFirstChild(list);
    for (const auto& [name, value] : properties) {
      tinyxml2::XMLElement* property = list->InsertNewChildElement("property");
      property->SetAttribute("name", name);
      property->SetAttribute("value", cleanText(value).c_str());
    }
  }

  void skip(const std::string& name, const std::string& message, double ms = 0) {
    addCase(name, ms)->InsertNewChildElement("skipped")->SetAttribute("message",
                                                                      cleanText(message).c_str());
    ++counts_.skipped;
  }

  const Counts& close(double ms) {
    counts_.write(element_);
    element_->SetAttribute("time", seconds(ms).c_str());
    return counts_;
  }
  bool green() const { return counts_.failures + counts_.errors == 0; }

 private:
  tinyxml2::XMLElement* addCase(const std::string& name, double ms) {
    ++counts_.tests;
    tinyxml2::XMLElement* element = element_->InsertNewChildElement("testcase");
    element->SetAttribute("classname", name_.c_str());
    element->SetAttribute("name", cleanText(name).c_str());
    element->SetAttribute("time", seconds(ms).c_str());
    addFile(element);
    return element;
  }
  /// Where readers find what was tested.
  void addFile(tinyxml2::XMLElement* element) const {
    if (!file_.empty()) element->SetAttribute("file", file_.c_str());
  }
  void addProblem(const std::string& name, const char* kind, const std::string& type,
                  const std::string& message, double ms) {
    tinyxml2::XMLElement* problem = addCase(name, ms)->InsertNewChildElement(kind);
    problem->SetAttribute("type", type.c_str());
    problem->SetAttribute("message", cleanText(message).c_str());
    problem->SetText(cleanText(message).c_str());
  }

  tinyxml2::XMLElement* element_;
  std::string name_;
  std::string file_;
  Counts counts_;
};

/// What of the scenario is missing: texts that nobody judged.
std::vector<std::string> unjudged(const ScenarioResult& result) {
  std::vector<std::string> texts;
  if (!result.expectations.empty() || !result.scenario.is_object()) return texts;
  const auto expect = result.scenario.find("expect");
  if (expect == result.scenario.end() || !expect->is_array()) return texts;
  for (const Json& one : *expect) {
    if (one.is_string()) texts.push_back(one.get<std::string>());
  }
  return texts;
}

int blocksOf(const ScenarioResult& result) {
  if (!result.scenario.is_object()) return 0;
  const auto repeat = result.scenario.find("repeat");
  constexpr int kMost = 10'000;  // of a file that somebody wrote by hand
  return repeat != result.scenario.end() && repeat->is_number_integer()
             ? std::clamp(repeat->get<int>(), 0, kMost)
             : 0;
}

const char* whyNotMade(const ScenarioResult& result) {
  return result.interrupted ? "not made: the run was interrupted"
                            : "not made: the run ended before";
}

void addExpectations(Suite& suite, const ScenarioResult& result) {
  for (const Expectation& expectation : result.expectations) {
    if (expectation.pass) {
      suite.pass(expectation.text);
      continue;
    }
    std::string message =
        fmt::format("expected {}, found {}", expectation.text, valueText(expectation.value));
    if (!expectation.message.empty()) message += ": " + expectation.message;
    if (expectation.is_void) {
      suite.error(expectation.text, "void", message);
    } else if (expectation.value.is_null()) {
      suite.error(expectation.text, "no value", message);
    } else {
      suite.fail(expectation.text, "expectation", message);
    }
  }
  for (const std::string& text : unjudged(result)) suite.skip(text, whyNotMade(result));
}

std::vector<std::pair<const char*, std::string>> propertiesOf(const Run& run) {
  std::vector<std::pair<const char*, std::string>> properties;
  if (run.after_pct) properties.emplace_back("after_pct", fmt::format("{:.4g}", *run.after_pct));
  if (std::string back = backWords(run); !back.empty()) {
    properties.emplace_back("back_to_95_pct_ms", std::move(back));
  }
  return properties;
}

/// A run that hung and was restarted did what its strategy does; one that only hung did not, unless
/// the scenario passes: then an expectation says that it must end so.
void addRuns(Suite& suite, const ScenarioResult& result) {
  const bool passes = result.verdict == Verdict::kPass && !result.interrupted;
  for (const Run& run : result.runs) {
    const std::string name =
        fmt::format("{} block {} {}", run.strategy, run.block + 1, nameOf(run.arm));
    const std::string message = run.message.empty() ? nameOf(run.status) : run.message;
    const bool restarted = run.status == RunStatus::kHung && !run.restarts.empty();
    if (!run.void_because.empty()) {
      // It counts for nothing. A result that passes has other blocks, and stays green.
      if (passes) {
        suite.skip(name, run.void_because, run.duration_ms);
      } else {
        suite.error(name, "invalid", run.void_because, run.duration_ms);
      }
    } else if (run.status == RunStatus::kOk || restarted || passes) {
      suite.pass(name, run.duration_ms);
    } else if (run.status == RunStatus::kInvalid) {
      suite.error(name, "invalid", message, run.duration_ms);
    } else if (result.interrupted && &run == &result.runs.back()) {
      suite.error(name, "interrupted", message, run.duration_ms);
    } else {
      suite.fail(name, nameOf(run.status), message, run.duration_ms);
    }
    suite.properties(propertiesOf(run));
  }
}

/// Those that the scenario asks for and that were not made.
void addMissingRuns(Suite& suite, const ScenarioResult& result) {
  for (int block = 0; block < blocksOf(result); ++block) {
    for (const Summary& row : result.summary) {
      if (row.origin == Origin::kModelled) continue;
      const bool made = std::ranges::any_of(result.runs, [&](const Run& run) {
        return run.block == block && run.strategy == row.strategy;
      });
      if (!made) {
        suite.skip(fmt::format("{} block {}", row.strategy, block + 1), whyNotMade(result));
      }
    }
  }
}

/// No green file for a result that is not green: what no case above shows becomes one of its own.
void addVerdict(Suite& suite, const ScenarioResult& result, bool others_green) {
  if (result.verdict == Verdict::kPass && !result.interrupted) return suite.pass("verdict");
  const VerdictText text = explainVerdict(result);
  std::string message = text.headline;
  for (const std::string& reason : text.reasons) message += "\n" + reason;
  if (result.interrupted) {
    suite.error("verdict", "interrupted", message);
  } else if (result.verdict != Verdict::kFail) {
    suite.error("verdict", nameOf(result.verdict), message);
  } else if (others_green) {
    suite.fail("verdict", nameOf(result.verdict), message);
  }
}

class JunitRenderer final : public Renderer {
 public:
  const char* name() const override { return "junit"; }
  const char* fileName() const override { return "junit.xml"; }
  std::string text(const ScenarioResult& result) const override {
    tinyxml2::XMLDocument document;
    document.InsertEndChild(document.NewDeclaration());
    tinyxml2::XMLElement* root = document.NewElement("testsuites");
    document.InsertEndChild(root);
    const std::string name = "faultline." + scenarioName(result);
    root->SetAttribute("name", cleanText(name).c_str());

    Suite expectations(root, name + ".expectations", result);
    addExpectations(expectations, result);
    Suite runs(root, name + ".runs", result);
    addRuns(runs, result);
    addMissingRuns(runs, result);
    addVerdict(expectations, result, expectations.green() && runs.green());
    Counts all = expectations.close(0);
    all.add(runs.close(result.duration_ms));
    all.write(root);
    root->SetAttribute("time", seconds(result.duration_ms).c_str());
    if (!result.started_at.empty()) {
      root->SetAttribute("timestamp", cleanText(result.started_at).c_str());
    }

    tinyxml2::XMLPrinter printer;
    document.Print(&printer);
    return printer.CStr();
  }
};

}  // namespace

std::unique_ptr<Renderer> makeJunitRenderer() { return std::make_unique<JunitRenderer>(); }

}  // namespace faultline::reports
