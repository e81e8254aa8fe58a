#pragma once

#include <infiniband/verbs.h>

#include "injector/verbs/shim/provider_ops.h"

/// The program's own way of waiting for completions: it asks for an event of the next one, looks
/// once more, and sleeps until the event. What is held back has had its event already, so that the
/// shim gives it another when it is due, in ibv_get_cq_event().
namespace faultline::injector::verbs::shim {

int askForEvent(decltype(ContextOps::askForEvent) real, ibv_cq* cq, int solicited_only);

using GetEvent = int(ibv_comp_channel*, ibv_cq**, void**);
int getEvent(GetEvent* real, ibv_comp_channel* channel, ibv_cq** cq, void** cookie);

using AcknowledgeEvents = void(ibv_cq*, unsigned int);
/// Only those of the device's are the real library's to be told of: ibv_destroy_cq() waits until
/// exactly so many are acknowledged.
void acknowledgeEvents(AcknowledgeEvents* real, ibv_cq* cq, unsigned int count);

}  // namespace faultline::injector::verbs::shim
