#include "harness/cli/cli.h"

#include <CLI/CLI.hpp>

namespace faultline::cli {

int main(int argc, char** argv) {
  CLI::App app{"Fault-injection and resilience test bench for collective communication"};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return kExitOk;
}

}  // namespace faultline::cli
