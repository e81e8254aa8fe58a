#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "resilient_ccl/channel/hearing.h"
#include "resilient_ccl/channel/receipt.h"

namespace faultline::channel {

/// The word of an enumerator in a list by value; a value from the wire may be beyond it.
template <std::size_t N, typename Enum>
constexpr std::string_view wordOf(const std::array<std::string_view, N>& words, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? words[index] : "unknown";
}

/// Names a message between two processes: ordered only within a stream, so that nothing posted
/// late blocks anything else.
struct MessageKey {
  std::uint32_t communicator = 0;
  std::uint32_t sequence = 0;  ///< number of the message in its stream and direction
  std::uint64_t stream = 0;

  friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
};

/// What messages are numbered in, in each of the two directions by itself.
struct StreamKey {
  std::uint32_t communicator = 0;
  std::uint64_t stream = 0;

  friend auto operator<=>(const StreamKey&, const StreamKey&) = default;
};

/// The stream of a message.
inline StreamKey streamOf(const MessageKey& key) { return {key.communicator, key.stream}; }

/// Why a rail was given up, as the end that says it sees it.
enum class Cause : std::uint8_t {
  kNone,
  kLocalNic,   ///< this end's port is down
  kRemoteNic,  ///< the other end's port is down
  kRail,       ///< the connection was reset, closed or refused
  kPath,       ///< nothing comes through although both ends are alive
  kProtocol,   ///< the peer sent something that makes no sense
};

/// The causes in the words of results, by value. What is compared with them (expectations) takes
/// them from here.
inline constexpr std::array<std::string_view, 6> kCauseNames{"none", "local_nic", "remote_nic",
                                                             "rail", "path",      "protocol"};
constexpr std::string_view causeName(Cause cause) { return wordOf(kCauseNames, cause); }

/// The same failure seen from the other end: local and remote change places.
Cause mirrored(Cause cause);

/// Where the damage is, seen from the end that says it.
enum class Where : std::uint8_t {
  kUnknown,
  kLocal,    ///< at this end
  kRemote,   ///< at the other end
  kBetween,  ///< neither: between the two
};

/// The places in the words of results, by value.
inline constexpr std::array<std::string_view, 4> kWhereNames{"unknown", "local", "remote",
                                                             "between"};
constexpr std::string_view whereName(Where where) { return wordOf(kWhereNames, where); }

/// The place that a cause names by itself.
Where whereOf(Cause cause);

/// Which direction of a failed path carries nothing, seen from the end that says it.
enum class DeadDirection : std::uint8_t { kUnknown, kOutgoing, kIncoming, kBoth };

/// The directions in the words of results, by value.
inline constexpr std::array<std::string_view, 4> kDirectionNames{"unknown", "outgoing", "incoming",
                                                                 "both"};
constexpr std::string_view directionName(DeadDirection direction) {
  return wordOf(kDirectionNames, direction);
}

/// The same direction seen from the other end: outgoing and incoming change places.
DeadDirection mirrored(DeadDirection direction);

enum class RecordType : std::uint16_t {
  kGrant = 1,       ///< reliable: GrantRecord
  kRailFailed = 2,  ///< reliable, urgent: RailRecord; "I have given this rail up"
  kRailFenced = 3,  ///< reliable, urgent: RailRecord; "closed at my end, this is what I hold"
  kProbe = 4,       ///< ProbeRecord
  kProbeReply = 5,  ///< ProbeReplyRecord, back over the path that the probe came by
  kAbort = 6,       ///< reliable, urgent: text; the job is given up
  kNote = 7,        ///< reliable, urgent: for whoever owns the link (Link::sendNote)
  kTooLong = 8,     ///< reliable: TooLongRecord; "what I send there does not fit"
  /// reliable: StreamRecord; "I receive nothing in this stream any more"; behind all its grants.
  kReceivesClosed = 9,
  /// reliable: StreamRecord; "nothing of this stream is sent any more, or under way on a rail with
  /// late writes".
  kSendsEnded = 10,
  kGrants = 11,  ///< reliable: GrantsRecord
};

struct GrantRecord {
  MessageKey key;
  std::uint64_t capacity = 0;
  std::uint64_t address = 0;
  std::uint64_t regionKey = 0;
  std::uint32_t slot = 0;
  /// 1: for a short message, before its receive is posted. One that does not fit says so
  /// (kTooLong), and waits for another grant.
  std::uint32_t eager = 0;
};

/// Grants of messages that follow each other in their stream and differ in their slots alone: as
/// those of a stream often are that go together, on rails that need no address. One record with 16
/// bytes less than a GrantRecord, and 4 for each.
struct GrantsRecord {
  static constexpr std::uint32_t kMost = 8;

  MessageKey first;
  std::uint64_t capacity = 0;
  std::uint32_t eager = 0;
  std::uint32_t count = 0;
  std::array<std::uint32_t, kMost> slots{};  ///< `count` of them travel

  /// One more; false when it does not go with those that are there.
  bool add(const GrantRecord& grant);
  GrantRecord at(std::uint32_t index) const;
};

struct TooLongRecord {
  MessageKey key;
  std::uint64_t length = 0;  ///< of the message, bytes
  std::uint32_t slot = 0;
  std::uint32_t reserved = 0;
};

struct StreamRecord {
  std::uint64_t stream = 0;
  std::uint32_t communicator = 0;
  std::uint32_t reserved = 0;
};

struct RailRecord {
  std::uint32_t rail = 0;
  std::uint32_t epoch = 0;
  Receipt held;  ///< kRailFenced: the chunks of this rail and epoch that arrived here
  std::uint8_t cause = 0;
  std::uint8_t deadDirection = 0;  ///< DeadDirection, as the sender of the record sees it
  std::uint8_t stalled = 0;        ///< 1: the transport was stuck, the path lives
  std::uint8_t reserved = 0;
  std::uint32_t frame = 0;  ///< not 0: datagrams of so many bytes are lost, shorter ones are not
};

struct ProbeRecord {
  std::uint32_t round = 0;
  /// Not 0: the sender tries a path and asks the other end to send rounds of its own meanwhile, by
  /// which it learns what comes in. kThisPath: of the path by which this comes.
  std::uint32_t trial = 0;
  static constexpr std::uint32_t kThisPath = 2;
  /// Not 0: it came in a datagram of so many bytes, and is to be answered in one (FrameTrial).
  std::uint32_t frame = 0;
};

/// The payload of the longest UDP datagram, bytes.
inline constexpr std::int64_t kLongestFrame = 65507;

struct ProbeReplyRecord {
  std::uint32_t round = 0;
  std::uint32_t frame = 0;  ///< that of the probe
  /// All rounds of the asking end that have come here, over any path.
  Hearing heard;
};

/// What has arrived on one rail: the acknowledgement of its chunks, short, since every datagram has
/// one of each rail. Numbers are cut: no datagram is so old that they would mean another one. Of
/// what is beyond the base it tells the first chunks; on a rail that keeps the order there are
/// none.
struct RailReceipt {
  std::uint32_t base = 0;
  std::uint16_t epoch = 0;
  std::uint16_t beyond = 0;

  static RailReceipt of(std::uint32_t epoch, const Receipt& received) {
    return {static_cast<std::uint32_t>(received.base), static_cast<std::uint16_t>(epoch),
            static_cast<std::uint16_t>(received.beyond)};
  }
  bool isOf(std::uint32_t whole) const { return epoch == static_cast<std::uint16_t>(whole); }
  /// With the base that is nearest to one that was told before, of the same rail and epoch.
  Receipt after(const Receipt& known) const {
    const auto ahead = static_cast<std::int32_t>(base - static_cast<std::uint32_t>(known.base));
    return {known.base + static_cast<std::uint64_t>(std::int64_t{ahead}), beyond};
  }
};
static_assert(sizeof(RailReceipt) == 8);

/// One record of a datagram. `sequence` numbers reliable records from 1; 0 is unreliable.
struct Record {
  static constexpr std::size_t kMaxPayload = 200;

  RecordType type = RecordType::kGrant;
  std::uint64_t sequence = 0;
  std::span<const std::byte> payload;
};

/// Largest control datagram: fits the smallest MTU in use with room for headers.
inline constexpr std::size_t kMaxDatagram = 1400;

/// Begins every control datagram. `source` and `destination` are process ids of the job. Whoever
/// carries datagrams seals them with the key of the job (auth/sealed_path.h): what arrives here is
/// new and the peer's own.
struct DatagramHeader {
  static constexpr std::uint32_t kMagic = 0x374c4c46;  // "FLL7"

  std::uint32_t magic = kMagic;
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint8_t path = 0;
  std::uint8_t rails = 0;
  std::uint16_t records = 0;
  std::uint64_t number = 0;  ///< of this datagram on its path and direction, from 1
  std::uint32_t gaps = 0;    ///< among those of the other end: Arrivals::gaps
  std::uint32_t length = 0;  ///< of the datagram, bytes: behind it and its seal padding may follow
  Receipt control;           ///< which reliable records of the other end have arrived
};

/// Builds one datagram in a buffer of its own, reused for the next.
class DatagramWriter {
 public:
  void begin(const DatagramHeader& header, std::span<const RailReceipt> rails);
  /// False when the record does not fit any more; the datagram is unchanged then.
  bool add(const Record& record);
  std::span<const std::byte> finish();
  int records() const { return header_.records; }

 private:
  void append(const void* bytes, std::size_t count);

  DatagramHeader header_;
  std::size_t size_ = 0;
  std::array<std::byte, kMaxDatagram> buffer_{};
};

/// A datagram taken apart. Spans point into the datagram.
struct Datagram {
  DatagramHeader header;
  std::vector<RailReceipt> rails;
  std::vector<Record> records;
};

/// Checks every length before it believes it; an error for anything that is not exactly a datagram
/// of ours. Reuses the memory of `out`.
Status parseDatagram(std::span<const std::byte> bytes, Datagram& out);

/// Whether it is one that is padded to fill a frame (ProbeRecord::frame).
bool fillsFrame(const Datagram& datagram);

/// Only the header, to find out whom a datagram is for.
Result<DatagramHeader> parseHeader(std::span<const std::byte> bytes);

/// The payload of a record as a struct; an error when the length does not match.
template <typename T>
Result<T> payloadAs(const Record& record);

template <>
Result<GrantsRecord> payloadAs(const Record& record);

template <typename T>
std::span<const std::byte> bytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::span<const std::byte> bytesOf(const GrantsRecord& value);

}  // namespace faultline::channel

template <>
struct std::hash<faultline::channel::MessageKey> {
  std::size_t operator()(const faultline::channel::MessageKey& key) const noexcept;
};
