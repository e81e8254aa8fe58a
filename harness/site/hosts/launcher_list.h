#pragma once

#include <array>
#include <string_view>

#include "harness/site/hosts/launcher.h"

namespace faultline::hosts {

// A new launcher is a file of its own, and here its name, its row and its place among the others.
inline constexpr std::array<std::string_view, 4> kLauncherNames{"ssh", "slurm", "mpirun", "local"};

extern const Launcher kSshLauncher;
extern const Launcher kSlurmLauncher;
extern const Launcher kMpirunLauncher;
extern const Launcher kLocalLauncher;
inline constexpr std::array<const Launcher*, kLauncherNames.size()> kLaunchers{
    &kSshLauncher, &kSlurmLauncher, &kMpirunLauncher, &kLocalLauncher};

}  // namespace faultline::hosts
