#pragma once

#include <CLI/App.hpp>

namespace faultline::cli {

/// `faultline lab [--hosts N] [--rails N] -- PROGRAM...`: a soft-RoCE laboratory by hand
/// (docs/rdma_lab.md): boots it, runs one program on its hosts, and takes it down again.
CLI::App* addLabCommand(CLI::App& app, int& exit_code);

}  // namespace faultline::cli
