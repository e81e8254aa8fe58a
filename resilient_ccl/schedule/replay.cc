#include "resilient_ccl/schedule/replay.h"

#include <cassert>
#include <utility>

namespace faultline::schedule {

Replay::Replay(const OpTable& table, int window)
    : table_(table),
      window_(window),
      state_(static_cast<std::size_t>(table.size()), State::kWaiting),
      chains_(static_cast<std::size_t>(table.chains())),
      blockedHead_(static_cast<std::size_t>(table.size()), -1),
      heldHead_(static_cast<std::size_t>(table.size()), -1),
      heldNext_(static_cast<std::size_t>(table.size()), -1) {
  for (int chain = 0; chain < table.chains(); ++chain) {
    chains_[static_cast<std::size_t>(chain)].cursor = table.firstOf(chain);
  }
  for (int chain = 0; chain < table.chains(); ++chain) advance(chain);
}

std::vector<int> Replay::takeMovable() { return std::exchange(movable_, {}); }

std::vector<int> Replay::takeReceived() { return std::exchange(received_, {}); }

std::vector<int> Replay::takeIssued() { return std::exchange(issued_, {}); }

int* Replay::openCounter(int op) {
  Chain& chain = chains_[static_cast<std::size_t>(table_.chainOf(op))];
  if (table_[op].kind == OpKind::kSend) return &chain.openSends;
  if (isReceive(table_[op].kind)) return &chain.openReceives;
  return nullptr;
}

int Replay::unmetWait(int op) const {
  const OpTable::Entry& entry = table_[op];
  for (int i = 0; i < entry.waitCount; ++i) {
    if (entry.waitElements[i] > 0 && !isDone(entry.waitOp[i])) return entry.waitOp[i];
  }
  return -1;
}

void Replay::advance(int chainIndex) {
  Chain& chain = chains_[static_cast<std::size_t>(chainIndex)];
  const int end = table_.firstOf(chainIndex + 1);
  while (chain.cursor < end) {
    const int op = chain.cursor;
    if (const int blocker = unmetWait(op); blocker >= 0) {
      int& head = blockedHead_[static_cast<std::size_t>(blocker)];
      chain.nextBlocked = std::exchange(head, chainIndex);
      return;
    }
    int* open = openCounter(op);
    // finish() of any operation of this chain tries again.
    if (window_ > 0 && open != nullptr && *open >= window_) return;
    if (open != nullptr) ++*open;
    ++chain.cursor;
    issue(op);
  }
}

void Replay::issue(int op) {
  state_[static_cast<std::size_t>(op)] = State::kIssued;
  issued_.push_back(op);
  const OpTable::Entry& entry = table_[op];
  if (entry.kind == OpKind::kCopy) {
    movable_.push_back(op);
  } else if (isIssued(entry.partner)) {
    movable_.push_back(entry.kind == OpKind::kSend ? op : entry.partner);
  }
}

void Replay::complete(int op) {
  assert(state_[static_cast<std::size_t>(op)] == State::kIssued);
  const int partner = table_[op].partner;
  // Both ends are done before anybody reacts, so that the reactions see one consistent state.
  state_[static_cast<std::size_t>(op)] = State::kDone;
  if (partner < 0) {
    finish(op);
    return;
  }
  const int after = table_[partner].after;
  const bool held = after >= 0 && !isDone(after);
  state_[static_cast<std::size_t>(partner)] = held ? State::kHeld : State::kDone;
  if (held) {
    int& head = heldHead_[static_cast<std::size_t>(after)];
    heldNext_[static_cast<std::size_t>(partner)] = std::exchange(head, partner);
  }
  finish(op);
  if (!held) finishReceive(partner);
}

void Replay::finishReceive(int op) {
  // One after the other, not by recursion: a whole row may have been held.
  std::vector<int> ready{op};
  while (!ready.empty()) {
    const int receive = ready.back();
    ready.pop_back();
    state_[static_cast<std::size_t>(receive)] = State::kDone;
    received_.push_back(receive);
    finish(receive);
    int held = heldHead_[static_cast<std::size_t>(receive)];
    for (; held >= 0; held = heldNext_[static_cast<std::size_t>(held)]) ready.push_back(held);
  }
}

void Replay::finish(int op) {
  ++completed_;
  const int ownChain = table_.chainOf(op);
  int* open = openCounter(op);
  const bool windowWasFull = window_ > 0 && open != nullptr && *open >= window_;
  if (open != nullptr) --*open;

  int blocked = std::exchange(blockedHead_[static_cast<std::size_t>(op)], -1);
  bool ownChainAdvanced = false;
  while (blocked >= 0) {
    const int next = std::exchange(chains_[static_cast<std::size_t>(blocked)].nextBlocked, -1);
    ownChainAdvanced |= blocked == ownChain;
    advance(blocked);
    blocked = next;
  }
  if (!windowWasFull || ownChainAdvanced) return;
  // Only a chain that is not blocked on a wait may be advanced here: one that is would enter the
  // list of its blocker a second time.
  const int cursor = chains_[static_cast<std::size_t>(ownChain)].cursor;
  if (cursor < table_.firstOf(ownChain + 1) && unmetWait(cursor) < 0) advance(ownChain);
}

}  // namespace faultline::schedule
