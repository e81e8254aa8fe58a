#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "injector/fault_kind.h"
#include "injector/faults/registry.h"
#include "tests/support/source_literals.h"

// Nobody outside of the injector knows a fault by its name: everything else asks for the properties
// of its kind, and names in texts come from the list.

namespace faultline::injector {
namespace {

/// Whether the text names the fault. A name with an underscore is one wherever it stands. Others
/// are words of English as well ("without a loss"): they are names where nothing else is in the
/// text, between quotes, and behind what a name follows.
bool namesFault(std::string_view text, std::string_view name) {
  if (!test::hasWord(text, name)) return false;
  if (name.find('_') != std::string_view::npos) return true;
  if (text == name) return name != "none";  // a value of many keys
  const std::string word(name);
  for (const std::string& written : {"'" + word + "'", "`" + word + "`", "\\\"" + word + "\\\""}) {
    if (text.find(written) != std::string_view::npos) return true;
  }
  for (const char* const before :
       {"kind: ", "--fault ", "describe ", "inject ", "fault ", "faults "}) {
    const std::string written = before + word;
    for (std::size_t at = text.find(written); at != std::string_view::npos;
         at = text.find(written, at + 1)) {
      const std::size_t end = at + written.size();
      if (end == text.size() || !test::isWordCharacter(text[end])) return true;
    }
  }
  return false;
}

TEST(FaultNamesTest, ANameIsFoundInsideOfATextAndAWordOfEnglishIsNone) {
  for (const char* const text : {"port_down", "a port_down.", "faultline describe port_down",
                                 "the faults loss and port_down", "port_down, port_flap"}) {
    EXPECT_TRUE(namesFault(text, "port_down")) << text;
  }
  for (const char* const text : {"rdma_port_down", "port_downs", "port down", "", "port_dow"}) {
    EXPECT_FALSE(namesFault(text, "port_down")) << text;
  }
  for (const char* const text :
       {"loss", "kind: loss", "{kind: loss, percent: 5%}", "write 'loss'", "the `loss` of",
        "a \\\"loss\\\"", "--fault loss", "the fault loss", "the faults loss and others",
        "faultline describe loss", "kind: losses, kind: loss"}) {
    EXPECT_TRUE(namesFault(text, "loss")) << text;
  }
  for (const char* const text : {"a loss of frames", "lossless", "kind: lossy", "the faults losses",
                                 "the faults losses, not a loss"}) {
    EXPECT_FALSE(namesFault(text, "loss")) << text;
  }
  EXPECT_FALSE(namesFault("none", "none"));
  EXPECT_TRUE(namesFault("kind: none", "none"));
}

TEST(FaultNamesTest, LiteralsAreReadAsTheCompilerReadsThem) {
  const std::string source =
      "#include \"a/b.h\"\n"
      "// \"comment\"\n"
      "/* \"more\n\" */ f(\"one\", '\"', 1'000, \"t\\\"wo\");\n"
      "auto x = R\"x(three\n\"four\")x\"; g(\"five\" // \"six\"\n"
      "  \"seven // eight\\nnine\\\\nine\");\n";
  std::vector<std::string> found;
  for (const test::SourceLiteral& literal : test::LiteralReader(source).read("f.cc")) {
    found.push_back(std::to_string(literal.line) + " " + literal.text);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"4 one", "4 t\\\"wo", "5 three\n\"four\"",
                                             "6 fiveseven // eight nine\\\\nine"}));
}

TEST(FaultNamesTest, NoFaultIsToldByItsNameOutsideTheInjector) {
  std::size_t literals = 0;
  for (const char* const room : {"base", "harness", "reports", "resilient_ccl", "wire"}) {
    for (const test::SourceLiteral& literal : test::sourceLiterals(room)) {
      ++literals;
      for (const FaultKind& kind : faultKinds()) {
        EXPECT_FALSE(namesFault(literal.text, kind.name))
            << literal.file << ":" << literal.line << ": " << kind.name << ": " << literal.text;
      }
    }
  }
  EXPECT_GT(literals, 5000u);
}

}  // namespace
}  // namespace faultline::injector
