#pragma once

namespace faultline::rdma_vm {

/// What the hidden verb `guest-agent` does: the first process of a guest (after init/init.cc). It
/// sets the host up and runs programs, each job under a guard of its own (launch/guard.h), which it
/// passes messages to and from. Everything goes through a virtio-serial port, which no fault of a
/// network strikes. It ends with the guest. Messages that it understands:
///   {type: setup, ...}                         first of all: GuestSetup
///   {type: job, job: ID, guard: GuardJob, read: bool}
///   {type: tell, job: ID, message}             to the job's guard
///   {type: rails}                              what its rails are like
///   {type: fault, fault: ID, message}          to the holder of a fault (fault_holder.h), which
///   the
///                                              first one starts
///   {type: end_fault, fault: ID}               ends it
/// that it sends:
///   {type: ready, kernel}                      or {type: error, message}, in answer to the setup
///   {type: guard, job: ID, message}            what the guard says; {type: gone, message} when it
///                                              ended without its last word
///   {type: output, job: ID, programs: [{out, err}]}   with `read`, after the guard's last word:
///                                              what they printed; what is not UTF-8 is replaced
///   {type: rails, rails}
///   {type: fault, fault: ID, message}          what the holder says; {type: gone, message} when it
///                                              has ended without being told to
int guestAgentMain();

}  // namespace faultline::rdma_vm
