#include <fmt/format.h>
#include <tinyxml2.h>

#include <utility>
#include <vector>

#include "base/clock.h"
#include "reports/renderer.h"
#include "reports/text.h"
#include "reports/verdict_text.h"

namespace faultline::reports {
namespace {

/// A suite that counts its cases. A *failure* is a wrong result of what was tested; an *error* is a
/// test that could not be made: CI systems show them apart.
class Suite {
 public:
  Suite(tinyxml2::XMLElement* root, const std::string& name)
      : element_(root->InsertNewChildElement("testsuite")), name_(cleanText(name)) {}

  void pass(const std::string& name, double ms = 0) { addCase(name, ms); }
  void fail(const std::string& name, const std::string& type, const std::string& message,
            double ms = 0) {
    addProblem(name, "failure", type, message, ms);
    ++failures_;
  }
  void error(const std::string& name, const std::string& type, const std::string& message,
             double ms = 0) {
    addProblem(name, "error", type, message, ms);
    ++errors_;
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

  void skip(const std::string& name, const std::string& message, double ms) {
    addCase(name, ms)->InsertNewChildElement("skipped")->SetAttribute("message",
                                                                      cleanText(message).c_str());
    ++skipped_;
  }

  void close(double ms) {
    element_->SetAttribute("name", name_.c_str());
    element_->SetAttribute("tests", tests_);
    element_->SetAttribute("failures", failures_);
    element_->SetAttribute("errors", errors_);
    element_->SetAttribute("skipped", skipped_);
    element_->SetAttribute("time", fmt::format("{:.3f}", ms / kMillisecondsPerSecond).c_str());
  }
  bool green() const { return failures_ + errors_ == 0; }

 private:
  tinyxml2::XMLElement* addCase(const std::string& name, double ms) {
    ++tests_;
    tinyxml2::XMLElement* element = element_->InsertNewChildElement("testcase");
    element->SetAttribute("classname", name_.c_str());
    element->SetAttribute("name", cleanText(name).c_str());
    element->SetAttribute("time", fmt::format("{:.3f}", ms / kMillisecondsPerSecond).c_str());
    return element;
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
  int tests_ = 0;
  int failures_ = 0;
  int errors_ = 0;
  int skipped_ = 0;
};

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
    } else {
      suite.fail(expectation.text, "expectation", message);
    }
  }
}

std::vector<std::pair<const char*, std::string>> propertiesOf(const Run& run) {
  std::vector<std::pair<const char*, std::string>> properties;
  if (run.after_pct) properties.emplace_back("after_pct", fmt::format("{:.4g}", *run.after_pct));
  if (run.back_to_95_pct_ms) {
    properties.emplace_back("back_to_95_pct_ms", fmt::format("{:.4g}", *run.back_to_95_pct_ms));
  } else if (run.after_fault) {
    properties.emplace_back("back_to_95_pct_ms",
                            fmt::format("never, within {:.0f} ms", run.after_fault->watched_ms));
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

    Suite expectations(root, name + ".expectations");
    addExpectations(expectations, result);
    Suite runs(root, name + ".runs");
    addRuns(runs, result);
    addVerdict(expectations, result, expectations.green() && runs.green());
    expectations.close(0);
    runs.close(result.duration_ms);

    tinyxml2::XMLPrinter printer;
    document.Print(&printer);
    return printer.CStr();
  }
};

}  // namespace

std::unique_ptr<Renderer> makeJunitRenderer() { return std::make_unique<JunitRenderer>(); }

}  // namespace faultline::reports
