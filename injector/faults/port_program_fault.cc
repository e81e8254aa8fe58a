#include "injector/faults/port_program_fault.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "injector/faults/still_watch.h"

namespace faultline::injector {

PortProgramFault::~PortProgramFault() {
  const Status status = PortProgramFault::revert();
  if (!status.ok()) spdlog::error("{}: {}", kind_, status.message());
}

Status PortProgramFault::tryOut(std::size_t payload) {
  RETURN_IF_ERROR(CrossingProbe::requireWhole(target_, payload).withContext(kind_));
  return program_.tryOut(programs(/*broken=*/false)).withContext(kind_);
}

Status PortProgramFault::apply() {
  applied_ = true;
  probing_ = false;
  const Status status = transit(true, [&] { return program_.install(programs(/*broken=*/true)); });
  if (!status.ok()) applied_ = false;  // install() leaves nothing behind
  return status;
}

Status PortProgramFault::step(TimePoint now) {
  if (!probing_) RETURN_IF_ERROR(beginProbing());
  if (conclusive()) return okStatus();
  for (CrossingProbe& probe : probes_) RETURN_IF_ERROR(probe.step());
  RETURN_IF_ERROR(look());
  latest_ = now;
  const CrossingProbe& last = probes_.back();
  const bool there = std::ranges::all_of(probes_, &CrossingProbe::allSent) && last.arrived() > 0 &&
                     last.control() > 0;
  if (there && !reached_) reached_ = now;
  return okStatus();
}

Status PortProgramFault::revert() {
  if (!applied_) return okStatus();
  RETURN_IF_ERROR(transit(false, [&] { return program_.remove(); }));
  applied_ = false;
  return okStatus();
}

bool PortProgramFault::conclusive() const {
  return probing_ && reached_ && latest_ - *reached_ >= kStill && fits();
}

Evidence PortProgramFault::verdict() const {
  Evidence result{kind_, "probes across the link", "nothing was observed", false};
  if (!probing_) return result;
  result.observed = seen();
  result.ok = conclusive();
  return result;
}

Status PortProgramFault::beginProbing() {
  if (probes_.empty()) {
    ASSIGN_OR_RETURN(probes_, openProbes());
  } else {
    for (CrossingProbe& probe : probes_) RETURN_IF_ERROR(probe.restart());
  }
  reached_.reset();
  probing_ = true;
  return okStatus();
}

}  // namespace faultline::injector
