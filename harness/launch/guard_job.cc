#include "harness/launch/guard_job.h"

namespace faultline::launch {

using nlohmann::json;

json toJson(const GuardJob& job) {
  json programs = json::array();
  for (const GuardedProgram& program : job.programs) {
    programs.push_back({{"executable", program.executable},
                        {"arguments", program.arguments},
                        {"environment", program.environment},
                        {"working_directory", program.working_directory},
                        {"stdout", program.stdout_path},
                        {"stderr", program.stderr_path}});
  }
  return {{"network_namespace", job.network_namespace},
          {"output_limit", job.output_limit},
          {"programs", std::move(programs)}};
}

Result<GuardJob> guardJobFromJson(const json& message) {
  try {
    GuardJob job;
    message.at("network_namespace").get_to(job.network_namespace);
    message.at("output_limit").get_to(job.output_limit);
    for (const json& entry : message.at("programs")) {
      GuardedProgram& program = job.programs.emplace_back();
      entry.at("executable").get_to(program.executable);
      entry.at("arguments").get_to(program.arguments);
      entry.at("environment").get_to(program.environment);
      entry.at("working_directory").get_to(program.working_directory);
      entry.at("stdout").get_to(program.stdout_path);
      entry.at("stderr").get_to(program.stderr_path);
    }
    return job;
  } catch (const json::exception& error) {
    return errorf(Code::kInvalidArgument, "a guard's job that cannot be understood: {}",
                  error.what());
  }
}

}  // namespace faultline::launch
