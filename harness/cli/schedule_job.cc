#include "harness/cli/schedule_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/input_file.h"
#include "resilient_ccl/reduction/reduce.h"
#include "resilient_ccl/schedule/algorithms.h"
#include "resilient_ccl/schedule/rerank.h"
#include "resilient_ccl/schedule/segments.h"
#include "resilient_ccl/schedule/written/read_schedule.h"

namespace faultline::cli {
namespace {

/// More segments only cost messages.
constexpr int kMostSegments = 128;

template <typename T>
bool parseNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Result<Bytes> parseSizeOrBytes(const std::string& text) {
  Bytes bytes = 0;
  if (parseNumber(text, bytes)) {
    if (bytes >= 0) return bytes;
    return errorf(Code::kInvalidArgument, "--size {}: a size cannot be negative", text);
  }
  Result<Bytes> parsed = parseSize(text);
  if (!parsed.ok()) return parsed.status().withContext("--size");
  return parsed;
}

Result<std::vector<Straggler>> parseStragglers(const ScheduleFlags& flags) {
  std::vector<Straggler> stragglers;
  for (const std::string& text : flags.stragglers) {
    const std::size_t colon = text.find(':');
    const std::size_t slash = text.find('/');
    Straggler straggler;
    if (colon == std::string::npos || !parseNumber(text.substr(0, colon), straggler.rank) ||
        !parseNumber(text.substr(colon + 1, slash - colon - 1), straggler.send) ||
        !parseNumber(text.substr(slash == std::string::npos ? colon + 1 : slash + 1),
                     straggler.receive)) {
      return errorf(Code::kInvalidArgument,
                    "--straggler {}: expected RANK:R, for example 1:0.5 for half the bandwidth, or "
                    "RANK:SEND/RECEIVE",
                    text);
    }
    if (straggler.rank < 0 || straggler.rank >= flags.ranks) {
      return errorf(Code::kInvalidArgument, "--straggler {}: there is no rank {} among {} ranks",
                    text, straggler.rank, flags.ranks);
    }
    const auto possible = [](double share) { return share > 0 && share <= 1; };
    if (!possible(straggler.send) || !possible(straggler.receive)) {
      return errorf(Code::kInvalidArgument,
                    "--straggler {}: R is the share of bandwidth that is left, above 0 and at "
                    "most 1",
                    text);
    }
    for (const Straggler& other : stragglers) {
      if (other.rank == straggler.rank) {
        return errorf(Code::kInvalidArgument, "--straggler {}: rank {} is given twice", text,
                      straggler.rank);
      }
    }
    stragglers.push_back(straggler);
  }
  return stragglers;
}

Result<schedule::LiveRails> parseRails(const ScheduleFlags& flags) {
  constexpr int kMostRails = 64;
  if (flags.rails < 1 || flags.rails > kMostRails || !flags.stragglers.empty() ||
      flags.ranksPerNode > 1) {
    return errorf(Code::kInvalidArgument,
                  "--lost-rail: needs --rails 1..{}, and goes neither with --straggler nor with "
                  "--ranks-per-node",
                  kMostRails);
  }
  schedule::LiveRails rails;
  rails.rails = flags.rails;
  rails.live.assign(static_cast<std::size_t>(flags.ranks),
                    ~std::uint64_t{0} >> (kMostRails - flags.rails));
  for (const std::string& text : flags.lostRails) {
    const std::size_t colon = text.find(':');
    int rank = -1, rail = -1;
    if (colon == std::string::npos || !parseNumber(text.substr(0, colon), rank) ||
        !parseNumber(text.substr(colon + 1), rail) || rank < 0 || rank >= flags.ranks || rail < 0 ||
        rail >= flags.rails) {
      return errorf(Code::kInvalidArgument,
                    "--lost-rail {}: expected RANK:RAIL among {} ranks and {} rails", text,
                    flags.ranks, flags.rails);
    }
    rails.live[static_cast<std::size_t>(rank)] &= ~(std::uint64_t{1} << rail);
  }
  for (int rank = 0; rank < flags.ranks; ++rank) {
    if (rails.port(rank) == 0) {
      return errorf(Code::kInvalidArgument, "--lost-rail: rank {} has no rail left", rank);
    }
  }
  return rails;
}

/// "0.001" (in units of S/B), or "5us" together with --bandwidth.
Result<double> parseCostTime(const std::string& flag, const std::string& text,
                             const std::string& bandwidth, Bytes size) {
  double value = 0;
  if (!parseNumber(text, value)) {
    Result<Duration> duration = parseDuration(text);
    if (!duration.ok()) {
      return errorf(Code::kInvalidArgument,
                    "{} {}: expected a multiple of the time that the buffer needs through a "
                    "healthy port, such as 0.001, or a duration such as 5us",
                    flag, text);
    }
    if (bandwidth.empty()) {
      return errorf(Code::kInvalidArgument,
                    "{} {}: a duration needs --bandwidth RATE to compare it with", flag, text);
    }
    Result<BitsPerSecond> rate = parseRate(bandwidth);
    if (!rate.ok()) return rate.status().withContext("--bandwidth");
    if (*rate <= 0 || size <= 0) {
      return errorf(Code::kInvalidArgument, "{} {}: needs a size and a bandwidth above zero", flag,
                    text);
    }
    constexpr double kBitsPerByte = 8;
    value = toSeconds(*duration) * static_cast<double>(*rate) /
            (kBitsPerByte * static_cast<double>(size));
  }
  if (!(value >= 0) || !std::isfinite(value)) {
    return errorf(Code::kInvalidArgument, "{} {}: must not be negative", flag, text);
  }
  return value;
}

Result<std::shared_ptr<const schedule::ScheduleSource>> readImport(const std::string& path) {
  const auto text = readInput(path, {.what = "schedule",
                                     .attempt = "cannot be read as a schedule",
                                     .mostBytes = schedule::kMostScheduleBytes});
  if (!text.ok()) return text.status().withContext("--import " + path);
  auto source = schedule::readSchedule(*text);
  if (!source.ok()) return source.status().withContext("--import " + path);
  return source;
}

/// Times of messages that are given as durations are multiples of what `size` takes.
Status readMessageCosts(const ScheduleFlags& flags, Bytes size, schedule::CostOptions& cost) {
  ASSIGN_OR_RETURN(cost.alpha, parseCostTime("--alpha", flags.alpha, flags.bandwidth, size));
  ASSIGN_OR_RETURN(cost.perMessage,
                   parseCostTime("--per-message", flags.perMessage, flags.bandwidth, size));
  return okStatus();
}

/// Flags that make no sense together with a schedule from a file, or without one.
Status checkImport(const ScheduleFlags& flags) {
  if (flags.import.empty()) {
    if (!flags.algorithm.empty() && flags.ranks != ScheduleFlags::kNotGiven) return okStatus();
    return errorf(Code::kInvalidArgument, "needs --algorithm and --ranks, or --import FILE");
  }
  if (!flags.algorithm.empty() || flags.ranks != ScheduleFlags::kNotGiven || flags.segments ||
      flags.window != 0 || flags.rerank) {
    return errorf(Code::kInvalidArgument,
                  "--import: the file says which ranks and operations there are; goes with none of "
                  "--algorithm, --ranks, --segments, --window, --rerank");
  }
  return okStatus();
}

}  // namespace

Result<ScheduleJob> understand(ScheduleFlags flags) {
  RETURN_IF_ERROR(checkImport(flags));
  std::shared_ptr<const schedule::ScheduleSource> imported;
  if (!flags.import.empty()) {
    ASSIGN_OR_RETURN(imported, readImport(flags.import));
    flags.ranks = imported->ranks();
  }
  if (flags.ranks < 1) {
    return errorf(Code::kInvalidArgument, "--ranks {}: at least 1 rank is needed", flags.ranks);
  }
  ScheduleJob job;
  ASSIGN_OR_RETURN(job.size, parseSizeOrBytes(flags.size));
  ASSIGN_OR_RETURN(job.stragglers, parseStragglers(flags));
  job.bandwidths = std::vector<double>(static_cast<std::size_t>(flags.ranks), 1.0);
  for (const Straggler& straggler : job.stragglers) {
    job.bandwidths.send[static_cast<std::size_t>(straggler.rank)] = straggler.send;
    job.bandwidths.receive[static_cast<std::size_t>(straggler.rank)] = straggler.receive;
  }
  const auto portModel = [](const std::string& name) {
    return name == "fluid" ? schedule::PortModel::kFluid : schedule::PortModel::kOnePort;
  };
  if (flags.portModel.empty()) {
    job.portModels = {schedule::PortModel::kFluid, schedule::PortModel::kOnePort};
  } else {
    job.portModels = {portModel(flags.portModel)};
  }
  job.cost.portModel = job.portModels.front();
  RETURN_IF_ERROR(readMessageCosts(flags, job.size, job.cost));
  const std::int64_t elementSize = reduction::sizeOf(*reduction::dataTypeFromName(flags.dtype));
  schedule::ScheduleRequest request;
  request.ranks = flags.ranks;
  // The last element of a size that is no multiple of the type counts as a whole one.
  request.elements = job.size / elementSize + (job.size % elementSize != 0 ? 1 : 0);
  request.segments = flags.segments.value_or(1);
  request.window = flags.window;
  request.ranksPerNode = job.cost.ranksPerNode = flags.ranksPerNode;
  if (flags.insideBandwidth > 0) job.cost.insideBandwidth = flags.insideBandwidth;
  request.bandwidths = job.bandwidths;
  request.shares = portModel(flags.shares);
  const auto make = [&]() -> Result<std::unique_ptr<schedule::Schedule>> {
    if (imported) {
      std::int64_t elements = request.elements;
      // A file of chunks is written again with whole ones; it is the same for every size.
      if (flags.format == "msccl-xml") {
        elements = (elements + imported->chunks() - 1) / imported->chunks() * imported->chunks();
      }
      return imported->make(elements);
    }
    auto made = schedule::makeSchedule(flags.algorithm, request);
    const schedule::MessageCost message{job.cost.alpha, job.cost.perMessage};
    const bool costly = message.alpha > 0 || message.perMessage > 0;
    if (!made.ok() || flags.segments || !(costly || flags.bestSegments)) return made;
    // A segment of less than an element for each rank is none.
    const std::int64_t most =
        std::clamp<std::int64_t>(request.elements / flags.ranks, 1, kMostSegments);
    request.segments = schedule::bestSegments(flags.algorithm, request, message,
                                              static_cast<int>(most), job.cost.portModel);
    job.segmentsChosen = true;
    return schedule::makeSchedule(flags.algorithm, request);
  };
  const auto settle = [&]() -> Status {
    ASSIGN_OR_RETURN(job.schedule, make());
    if (!imported) job.segments = request.segments;
    const std::int64_t data =
        schedule::dataElements(job.schedule->collective(), job.schedule->elements());
    if (data == request.elements) return okStatus();
    job.size = data * elementSize;
    return readMessageCosts(flags, job.size, job.cost);
  };
  if (flags.lostRails.empty()) {
    RETURN_IF_ERROR(settle());
    if (!imported) {
      job.remake = [algorithm = flags.algorithm, request](std::int64_t elements, int segments) {
        schedule::ScheduleRequest other = request;
        other.elements = elements;
        other.segments = segments;
        return schedule::makeSchedule(algorithm, other);
      };
    }
    return job;
  }
  ASSIGN_OR_RETURN(const schedule::LiveRails rails, parseRails(flags));
  std::vector<int> order(static_cast<std::size_t>(flags.ranks));
  std::iota(order.begin(), order.end(), 0);
  if (flags.rerank) order = schedule::rerank(rails);
  std::vector<double> inOrder;
  for (int rank = 0; rank < flags.ranks; ++rank) {
    job.bandwidths.send[static_cast<std::size_t>(rank)] = rails.port(rank);
    inOrder.push_back(rails.port(order[static_cast<std::size_t>(rank)]));
  }
  job.bandwidths.receive = job.bandwidths.send;
  job.cost.links = rails.links();
  request.bandwidths = inOrder;
  RETURN_IF_ERROR(settle());
  if (flags.rerank && job.schedule->collective() != schedule::Collective::kAllReduce) {
    return errorf(Code::kInvalidArgument, "--rerank: {} is no AllReduce, its ranks have places",
                  flags.algorithm);
  }
  job.schedule = schedule::reordered(std::move(job.schedule), std::move(order));
  return job;
}

}  // namespace faultline::cli
