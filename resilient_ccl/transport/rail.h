#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "base/units.h"

namespace faultline::transport {

/// No slot: a chunk that was withdrawn. Its number still arrives, without payload.
inline constexpr std::uint32_t kNoSlot = 0xffffffff;

/// What travels in front of a chunk's payload: where it belongs at the receiver. Fixed-width
/// fields, written to the wire as they stand in memory (all supported machines are little-endian).
struct ChunkHeader {
  std::uint64_t sequence = 0;       ///< number of this chunk on its rail and epoch: 0, 1, 2, ...
  std::uint64_t offset = 0;         ///< of the payload in the message, bytes
  std::uint64_t messageLength = 0;  ///< of the whole message, bytes
  std::uint32_t slot = 0;           ///< receiver's slot, as its grant named it
  std::uint32_t length = 0;         ///< of the payload, bytes

  friend bool operator==(const ChunkHeader&, const ChunkHeader&) = default;
};
static_assert(sizeof(ChunkHeader) == 32);

/// What travels in place of a chunk that nobody needs any more.
inline ChunkHeader withdrawn(const ChunkHeader& chunk) {
  return {.sequence = chunk.sequence, .slot = kNoSlot};
}

/// What travels alone and means nothing to a channel (Rail::tellRoom).
inline constexpr ChunkHeader kRoomWord{.sequence = ~std::uint64_t{0}, .slot = kNoSlot};

/// Length of a message of which no chunk has been seen.
inline constexpr Bytes kUnknownLength = -1;

/// How messages are cut into chunks: alike at both ends, whatever rails live.
struct Cut {
  /// Of a chunk, bytes.
  Bytes longest;
  /// A message that has fewer of the longest chunks than this is cut into as many equal parts, so
  /// that it travels on all rails at once; into parts of `least`, when it is shorter still.
  int rails = 1;
  /// Bytes; 0: a kMostParts-th of the longest chunk.
  Bytes least = 0;

  static constexpr int kMostParts = 8;
  /// Parts begin at multiples of a cache line.
  static constexpr std::uint64_t kUnit = 64;

  /// Of every chunk but the last, which may be shorter.
  std::uint64_t chunkBytes(std::uint64_t messageLength) const {
    const auto most = static_cast<std::uint64_t>(longest);
    const std::uint64_t part =
        (std::max<std::uint64_t>(messageLength, 1) - 1) / static_cast<std::uint64_t>(rails) + kUnit;
    const std::uint64_t shortest = least > 0 ? std::min(static_cast<std::uint64_t>(least), most)
                                             : (most + kMostParts - 1) / kMostParts;
    return rails == 1 ? most : std::clamp(part / kUnit * kUnit, shortest, most);
  }
  /// An empty message has one, without payload.
  std::uint64_t chunkCount(std::uint64_t messageLength) const {
    const std::uint64_t whole = chunkBytes(messageLength);
    return messageLength == 0 ? 1 : (messageLength + whole - 1) / whole;
  }
  /// The number of the chunk that begins at `offset`, counted from 0.
  std::uint64_t number(std::uint64_t messageLength, std::uint64_t offset) const {
    return offset / chunkBytes(messageLength);
  }
};

/// Whether the chunk is one of a message that its slot can take: a slot of `capacity` bytes, for a
/// message of `length` bytes where that is known.
inline bool fits(const ChunkHeader& header, Bytes capacity, Bytes length, const Cut& cut) {
  const std::uint64_t whole = cut.chunkBytes(header.messageLength);
  const bool behindTheEnd =
      header.messageLength == 0 ? header.offset != 0 : header.offset >= header.messageLength;
  return header.messageLength <= static_cast<std::uint64_t>(capacity) &&
         (length == kUnknownLength || header.messageLength == static_cast<std::uint64_t>(length)) &&
         !behindTheEnd && header.offset % whole == 0 &&
         header.length == std::min(whole, header.messageLength - header.offset);
}

/// Where a granted slot lies in the receiver's memory, for rails that write it remotely. Means
/// nothing to rails whose receiver places every byte itself (TCP).
struct RemoteRegion {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};

/// The receiving side of a rail, implemented by the channel.
class RailSink {
 public:
  virtual ~RailSink() = default;

  /// Where the payload of this chunk goes: a place for `header.length` bytes, or null when nobody
  /// wants it (the rail then reads it into scratch memory). An error when the header is a lie: the
  /// rail must then be given up. Only asked by rails without late writes.
  virtual Result<std::byte*> place(int rail, const ChunkHeader& header) = 0;

  /// The whole payload is where it belongs.
  virtual void chunkArrived(int rail, const ChunkHeader& header) = 0;

  /// The rail is broken and will carry nothing more. Called once per rail and epoch.
  virtual void railFailed(int rail, const Status& why) = 0;
};

/// What a transport knows of the bytes that it has sent.
struct Delivery {
  std::uint64_t acknowledged = 0;  ///< bytes that the other machine has acknowledged, in all
  bool outstanding = false;        ///< bytes have been sent and not been acknowledged
  /// Bytes wait in this machine with none under way, although the other one has room for them: the
  /// port does not take them.
  bool refused = false;
  Duration roundTrip{};  ///< from sending to acknowledgement, smoothed; zero: not known
  Duration variation{};  ///< of the round trip: its smoothed mean deviation (RFC 6298)
  /// Payload of a UDP datagram that is as long on the wire as the frames of this rail, bytes; 0:
  /// there are no such frames, or it is not known.
  Bytes frame = 0;
};

/// One path between two processes over one NIC pair. Carries chunks; completes, fails, or says
/// nothing. Polled by the engine that owns it; no thread of its own; not thread-safe.
class Rail {
 public:
  virtual ~Rail() = default;

  /// Whether bytes may still land in the receiver's memory after this end stopped caring: true for
  /// remote writes (until fenced), false where the receiver's reader decides for each byte.
  virtual bool lateWrites() const = 0;

  /// Takes a chunk to send. `data` must stay valid until the chunk is acknowledged by the peer's
  /// channel or the rail is fenced. Never blocks, never calls back.
  virtual void submit(const ChunkHeader& header, const std::byte* data,
                      const RemoteRegion& region) = 0;

  /// Reads `data` of this chunk no longer: the user gets it back although the chunk has not been
  /// acknowledged. True when the payload need not be carried any more and only its number is;
  /// otherwise it is carried on from a copy. Only asked of rails without late writes.
  virtual bool detach(std::uint64_t sequence) = 0;

  /// Writes no more into the place that the sink has named for the chunk whose payload is arriving
  /// now; the rest of it goes into scratch memory. Only asked of rails without late writes.
  virtual void divert() = 0;
  /// What the transport says of its own deliveries, below the acknowledgements of the channel.
  /// Nothing outstanding where it cannot tell. Asked where nothing seems to move: what the
  /// transport has only put off it tries again.
  virtual Delivery delivery() const { return {}; }
  /// Tells the most that the rail has carried lately while it had much to carry, bytes/s; infinity:
  /// that is no longer known. A transport that puts more into a queue than that needs can put less.
  virtual void tellRate(double bytesPerSecond) { (void)bytesPerSecond; }
  /// Says to the other machine that this one takes bytes. Asked for by a peer whose rail makes no
  /// progress: a transport may have said so already and not been heard, and its other end waits for
  /// a timer. Nothing where that cannot be.
  virtual void tellRoom() {}

  /// Closes this end: first hands what has already arrived to the sink, then makes sure that
  /// nothing reads the sender's buffers and nothing writes the receiver's any more. May take time
  /// (a queue pair is flushed); `fenced()` says when it is done. Never calls railFailed.
  virtual void fence() = 0;
  virtual bool fenced() const = 0;
};

}  // namespace faultline::transport
