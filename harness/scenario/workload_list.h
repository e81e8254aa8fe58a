#pragma once

/// Every workload, in the order in which they are listed: one line each. The first is what a
/// scenario is taken for whose kind is none. Each has a folder `harness/workload/<name>`, which
/// defines what the tables want of it: `scenario::k<Name>Workload` (workload_kind.h)
/// and `workload::k<Name>Job` (harness/workload/job_kind.h).
#define FAULTLINE_WORKLOADS(WORKLOAD) \
  WORKLOAD(Training)                  \
  WORKLOAD(Collective)                \
  WORKLOAD(Inference)                 \
  WORKLOAD(Command)                   \
  WORKLOAD(Pingpong)
