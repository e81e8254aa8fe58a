#include "harness/cli/cli.h"

int main(int argc, char** argv) { return faultline::cli::main(argc, argv); }
