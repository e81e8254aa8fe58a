#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "resilient_ccl/schedule/collective.h"

namespace faultline::schedule::msccl {

/// An MSCCL algorithm as its XML has it: the format that the msccl-executor of NCCL 2.23 loads
/// (Azure/msccl-executor-nccl, msccl_parser.cc) and msccl-tools writes with `old_format`.
///
/// A rank (gpu) has thread blocks; each has a channel, at most one rank to send to and one to
/// receive from, and takes its steps one after the other. A message is matched by channel and ranks
/// in the order of steps. A step may wait for a step of another thread block; a `nop` in front of
/// it carries each further such wait. Offsets and counts are chunks, `chunks` of them in the
/// buffer.

enum class StepType : std::uint8_t {
  kNop,
  kSend,                ///< s: sends from the source
  kRecv,                ///< r: receives to the destination
  kRecvCopySend,        ///< rcs: receives to the destination and sends it on
  kRecvReduceSend,      ///< rrs: adds what is received to the source and sends the sum on
  kRecvReduceCopy,      ///< rrc: adds what is received to the source, into the destination
  kRecvReduceCopySend,  ///< rrcs: rrc, and sends the sum on
  kCopy,                ///< cpy: source to destination
};

enum class Buffer : std::uint8_t { kInput, kOutput };

struct Place {
  Buffer buffer = Buffer::kInput;
  int offset = -1;  ///< chunks; -1 where the step has no such place
};

struct Step {
  StepType type = StepType::kNop;
  Place source, destination;
  int count = 0;       ///< chunks
  int waitBlock = -1;  ///< thread block waited for; -1 for none
  int waitStep = -1;   ///< its step
  bool waitedFor = false;
  /// Not MSCCL's, whose loader ignores it: the step's place in its lane (lane = channel) where the
  /// file was made from a schedule; -1 for none.
  std::int64_t order = -1;
};

struct ThreadBlock {
  int sendPeer = -1;
  int recvPeer = -1;
  int channel = 0;
  std::vector<Step> steps;
};

struct Gpu {
  std::vector<ThreadBlock> blocks;
};

struct Algo {
  std::string name;
  std::string protocol = "Simple";
  Collective collective = Collective::kAllReduce;
  int channels = 0;
  int chunks = 0;  ///< of the larger of input and output
  bool inPlace = true;
  std::vector<Gpu> gpus;
};

/// What the executor has room for.
inline constexpr int kMaxChannels = 32;
inline constexpr int kMaxBlocksPerChannel = 32;
inline constexpr int kMaxSteps = 256;     ///< of a thread block
inline constexpr int kMaxCount = 71;      ///< chunks of a step
inline constexpr int kMaxChunks = 32767;  ///< offsets are 16 bits
/// Not a limit of the format: ranks that a file may name before it is taken for nonsense.
inline constexpr int kMaxRanks = 4096;

inline bool receives(StepType type) {
  return type != StepType::kNop && type != StepType::kSend && type != StepType::kCopy;
}
inline bool sends(StepType type) {
  return type == StepType::kSend || type == StepType::kRecvCopySend ||
         type == StepType::kRecvReduceSend || type == StepType::kRecvReduceCopySend;
}

}  // namespace faultline::schedule::msccl
