#include "resilient_ccl/channel/wire.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/random.h"

namespace faultline::channel {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

namespace {

struct RecordHeader {
  std::uint64_t sequence = 0;
  std::uint16_t type = 0;
  std::uint16_t length = 0;
  std::uint32_t reserved = 0;
};

}  // namespace

Cause mirrored(Cause cause) {
  if (cause == Cause::kLocalNic) return Cause::kRemoteNic;
  if (cause == Cause::kRemoteNic) return Cause::kLocalNic;
  return cause;
}

Where whereOf(Cause cause) {
  if (cause == Cause::kLocalNic) return Where::kLocal;
  return cause == Cause::kRemoteNic ? Where::kRemote : Where::kUnknown;
}

DeadDirection mirrored(DeadDirection direction) {
  if (direction == DeadDirection::kOutgoing) return DeadDirection::kIncoming;
  if (direction == DeadDirection::kIncoming) return DeadDirection::kOutgoing;
  return direction;
}

void DatagramWriter::append(const void* bytes, std::size_t count) {
  if (count == 0) return;
  std::memcpy(buffer_.data() + size_, bytes, count);
  size_ += count;
}

void DatagramWriter::begin(const DatagramHeader& header, std::span<const RailReceipt> rails) {
  header_ = header;
  header_.rails = static_cast<std::uint8_t>(rails.size());
  header_.records = 0;
  size_ = sizeof(DatagramHeader);
  append(rails.data(), rails.size_bytes());
}

bool DatagramWriter::add(const Record& record) {
  if (size_ + sizeof(RecordHeader) + record.payload.size() > buffer_.size()) return false;
  const RecordHeader header{record.sequence, static_cast<std::uint16_t>(record.type),
                            static_cast<std::uint16_t>(record.payload.size()), 0};
  append(&header, sizeof(header));
  append(record.payload.data(), record.payload.size());
  ++header_.records;
  return true;
}

std::span<const std::byte> DatagramWriter::finish() {
  header_.length = static_cast<std::uint32_t>(size_);
  std::memcpy(buffer_.data(), &header_, sizeof(header_));
  return {buffer_.data(), size_};
}

Result<DatagramHeader> parseHeader(std::span<const std::byte> bytes) {
  DatagramHeader header;
  if (bytes.size() < sizeof(header)) return errorf(Code::kInvalidArgument, "datagram too short");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != DatagramHeader::kMagic) {
    return errorf(Code::kInvalidArgument, "not a datagram of ours");
  }
  return header;
}

Status parseDatagram(std::span<const std::byte> bytes, Datagram& out) {
  ASSIGN_OR_RETURN(out.header, parseHeader(bytes));
  std::size_t at = sizeof(DatagramHeader);
  const auto left = [&] { return bytes.size() - at; };

  out.rails.resize(out.header.rails);
  const std::size_t railBytes = out.rails.size() * sizeof(RailReceipt);
  if (left() < railBytes) return errorf(Code::kInvalidArgument, "datagram cut in its receipts");
  if (railBytes != 0) std::memcpy(out.rails.data(), bytes.data() + at, railBytes);
  at += railBytes;

  out.records.clear();
  for (int i = 0; i < out.header.records; ++i) {
    RecordHeader header;
    if (left() < sizeof(header)) return errorf(Code::kInvalidArgument, "datagram cut in a record");
    std::memcpy(&header, bytes.data() + at, sizeof(header));
    at += sizeof(header);
    if (left() < header.length || header.length > Record::kMaxPayload) {
      return errorf(Code::kInvalidArgument, "record longer than its datagram");
    }
    out.records.push_back(
        {static_cast<RecordType>(header.type), header.sequence, bytes.subspan(at, header.length)});
    at += header.length;
  }
  if (left() != 0) return errorf(Code::kInvalidArgument, "bytes behind the last record");
  return okStatus();
}

template <typename T>
Result<T> payloadAs(const Record& record) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (record.payload.size() != sizeof(T)) {
    return errorf(Code::kInvalidArgument, "record of type {} has {} bytes instead of {}",
                  static_cast<int>(record.type), record.payload.size(), sizeof(T));
  }
  T value;
  std::memcpy(&value, record.payload.data(), sizeof(T));
  return value;
}

bool fillsFrame(const Datagram& datagram) {
  if (datagram.records.size() != 1) return false;
  const Record& record = datagram.records.front();
  if (record.type == RecordType::kProbe) {
    const auto probe = payloadAs<ProbeRecord>(record);
    return probe.ok() && probe->frame != 0;
  }
  const auto reply = payloadAs<ProbeReplyRecord>(record);
  return record.type == RecordType::kProbeReply && reply.ok() && reply->frame != 0;
}

bool GrantsRecord::add(const GrantRecord& grant) {
  if (count == kMost || grant.address != 0 || grant.regionKey != 0) return false;
  if (count == 0) {
    first = grant.key;
    capacity = grant.capacity;
    eager = grant.eager;
  }
  const bool next =
      streamOf(grant.key) == streamOf(first) && grant.key.sequence == first.sequence + count;
  if (!next || grant.capacity != capacity || grant.eager != eager) return false;
  slots[count++] = grant.slot;
  return true;
}

GrantRecord GrantsRecord::at(std::uint32_t index) const {
  return {.key = {first.communicator, first.sequence + index, first.stream},
          .capacity = capacity,
          .slot = slots[index],
          .eager = eager};
}

std::span<const std::byte> bytesOf(const GrantsRecord& value) {
  const auto whole = std::as_bytes(std::span(&value, 1));
  return whole.first(offsetof(GrantsRecord, slots) + value.count * sizeof(value.slots[0]));
}

template <>
Result<GrantsRecord> payloadAs(const Record& record) {
  GrantsRecord value;
  if (record.payload.size() <= sizeof(value)) {
    std::ranges::copy(record.payload, std::as_writable_bytes(std::span(&value, 1)).begin());
  }
  const bool sane = value.count > 0 && value.count <= GrantsRecord::kMost;
  if (!sane || record.payload.size() != bytesOf(value).size()) {
    return errorf(Code::kInvalidArgument, "{} grants in {} bytes", value.count,
                  record.payload.size());
  }
  return value;
}

template Result<GrantRecord> payloadAs(const Record&);
template Result<TooLongRecord> payloadAs(const Record&);
template Result<StreamRecord> payloadAs(const Record&);
template Result<RailRecord> payloadAs(const Record&);
template Result<ProbeRecord> payloadAs(const Record&);
template Result<ProbeReplyRecord> payloadAs(const Record&);

}  // namespace faultline::channel

std::size_t std::hash<faultline::channel::MessageKey>::operator()(
    const faultline::channel::MessageKey& key) const noexcept {
  const std::uint64_t low = (std::uint64_t{key.communicator} << 32) | key.sequence;
  return faultline::Random::mix(low ^ faultline::Random::mix(key.stream));
}
