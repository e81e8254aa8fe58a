#include "resilient_ccl/nccl/pair.h"

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>

#include "base/log.h"
#include "resilient_ccl/nccl/rail_order.h"

namespace faultline::nccl {
namespace {

// A token is a request's number and which of its buffers.
constexpr int kPartBits = 4;
static_assert(kMostReceives <= 1 << kPartBits);

/// Tokens of receives that are posted ahead of NCCL's: their number there.
constexpr std::uint64_t kEager = std::uint64_t{1} << 63;

constexpr std::string_view kGoodbye = "done";

std::uint64_t tokenOf(const Request& request, int part) {
  return std::uint64_t{request.number} << kPartBits | static_cast<unsigned>(part);
}

std::uint64_t randomNumber() {
  std::uint64_t number = 0;
  auth::fillRandom(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace

Pair::Pair(Settings settings)
    : settings_(std::move(settings)),
      incarnation_(randomNumber()),
      lost_(settings_.rails.size(), channel::Cause::kNone),
      mover_(settings_.options.smallMessage),
      eager_(settings_.options.smallMessage) {
  account_.peer = settings_.peer;
  // What was before the two met is nothing to the other one.
  if (settings_.failure) toldFailure_ = settings_.failure->number();
}

Pair::~Pair() {
  if (fabric_) fabric_->shutDown();
}

channel::LinkOptions Pair::linkOptions(const Settings& its) {
  channel::LinkOptions link;
  link.partners = its.partners;
  link.policy = its.options.policy;
  link.chunkBytes = its.options.chunkBytes;
  link.giveUp = its.options.linkBudget();
  link.smallMessage = its.options.smallMessage;
  link.holdOff = its.options.holdOff;
  link.longestHoldOff = std::max(its.options.holdOff, link.longestHoldOff);
  link.leastPart = its.options.chunkBytes;  // NCCL has many messages under way
  link.windowTime = kWindowTime;
  // All that a rail may hold: what a fast one stands still with is megabytes.
  link.tailBudget = static_cast<Bytes>(channel::Receipt::kReach + 1) * link.chunkBytes;
  return link;
}

Result<std::shared_ptr<Pair>> Pair::create(Settings settings) {
  std::shared_ptr<Pair> pair(new Pair(std::move(settings)));
  const Settings& its = pair->settings_;
  fabric::FabricOptions options;
  options.self = its.side;
  options.names = {its.side == 0 ? its.self : its.peer, its.side == 0 ? its.peer : its.self};
  options.jobKey = auth::JobKey::random();  // until the two have met
  options.nics = its.rails;
  options.managementAddress = its.management;
  options.link = linkOptions(its);
  options.sharedIoThreads = its.ioThreads;
  options.firstIoThread = its.firstIoThread;
  ASSIGN_OR_RETURN(pair->fabric_,
                   fabric::Fabric::create(options, static_cast<fabric::FabricClient&>(*pair)));
  return pair;
}

Status Pair::meet(const auth::PublicKey& key, const fabric::ProcessAddress& other,
                  std::uint64_t incarnation) {
  const std::lock_guard lock(mutex_);
  if (otherIncarnation_) {
    if (*otherIncarnation_ == incarnation) return okStatus();
    fail(errorf(Code::kAborted, "{} began anew", settings_.peer));
    return failure_;
  }
  if (const Status same = sharedAddress(other); !same.ok()) {
    fail(same);
    return failure_;
  }
  if (const std::string crossed = crossedWith(other); !crossed.empty()) {
    spdlog::warn("{} names its rails in another order: {}", settings_.peer, crossed);
  }
  ASSIGN_OR_RETURN(
      const auth::JobKey agreed,
      agreeOnPairKey(*settings_.identity, key, settings_.side, incarnation_, incarnation));
  fabric_->setJobKey(agreed);
  std::vector<fabric::ProcessAddress> addresses(2);
  addresses[settings_.side] = fabric_->address();
  addresses[this->other()] = other;
  RETURN_IF_ERROR(fabric_->connect(addresses));
  otherIncarnation_ = incarnation;
  reached_ = met_ = now();
  return okStatus();
}

std::string Pair::crossedWith(const fabric::ProcessAddress& other) const {
  std::vector<RailSubnet> rails;
  for (std::size_t rail = 0; rail < settings_.prefixes.size(); ++rail) {
    rails.push_back({railName(static_cast<int>(rail)), settings_.rails[rail].address,
                     settings_.prefixes[rail]});
  }
  std::vector<std::uint32_t> addresses;
  for (const auto& rail : other.rails) addresses.push_back(rail.data.address);
  return crossedRails(rails, addresses);
}

/// Two nodes with one address: packets to it never leave. Processes of one node, which meet at one
/// address of management, share all of them.
Status Pair::sharedAddress(const fabric::ProcessAddress& other) const {
  if (other.management.address == settings_.management) return okStatus();
  for (std::size_t rail = 0; rail < std::min(other.rails.size(), settings_.rails.size()); ++rail) {
    const fabric::Nic& nic = settings_.rails[rail];
    if (nic.address == 0 || other.rails[rail].data.address != nic.address) continue;
    return errorf(Code::kInvalidArgument,
                  "{} has the address {} of this node's {} as well, so that this rail reaches "
                  "nobody: a bridge of containers, or an address that was given twice. Name other "
                  "interfaces in FAULTLINE_NICS on all nodes, or give each node its own address",
                  settings_.peer, transport::tcp::formatAddress(nic.address),
                  railName(static_cast<int>(rail)));
  }
  return okStatus();
}

/// Under the lock. Rails may have come, and failed, before NCCL asks for the first connection.
bool Pair::givenUp(TimePoint now) {
  if (started_ || failed_) return false;
  if (fabric_->allPeersReached()) reached_ = now;
  if (now - reached_ < settings_.options.giveUp) return false;
  fail(errorf(Code::kUnavailable,
              "no rail to {} came up within FAULTLINE_GIVE_UP={} ({}): do the rails of all nodes "
              "have the same order, and do they reach each other?",
              settings_.peer, formatDuration(settings_.options.giveUp), fabric_->missingRails()));
  return true;
}

void Pair::want() {
  const std::lock_guard lock(mutex_);
  wanted_ = now();
}

bool Pair::met() const {
  const std::lock_guard lock(mutex_);
  return otherIncarnation_.has_value();
}

Result<bool> Pair::ready() {
  const std::lock_guard lock(mutex_);
  if (failed_) return failure_;
  if (!otherIncarnation_) return false;
  const TimePoint time = now();
  poll(time);
  if (failed_) return failure_;
  if (started_) return true;
  if (givenUp(time)) return failure_;
  if (!fabric_->allRailsUp()) {
    // Whoever waits for the others longer than for the first one would give it up.
    const Duration grace = std::min(settings_.options.railGrace, settings_.options.giveUp);
    if (time - met_ < grace || !fabric_->allPeersReached()) return false;
    spdlog::warn("begins with {} without {} (not connected within {})", settings_.peer,
                 fabric_->missingRails(), formatDuration(grace));
  }
  fabric_->start();
  started_ = true;
  return true;
}

std::uint32_t Connection::next(std::uint32_t tag) {
  for (auto& [known, count] : counts) {
    if (known == tag) return count++;
  }
  counts.emplace_back(tag, 1);
  return 0;
}

std::uint32_t Connection::count(std::uint32_t tag) const {
  const auto found =
      std::ranges::find(counts, tag, &std::pair<std::uint32_t, std::uint32_t>::first);
  return found == counts.end() ? 0 : found->second;
}

std::unique_ptr<Connection> Pair::open(const std::shared_ptr<Pair>& pair, std::uint32_t number,
                                       bool sends, int device) {
  ++pair->open_;
  return std::make_unique<Connection>(
      Connection{.pair = pair, .number = number, .sends = sends, .device = device});
}

Request* Pair::take(Connection& connection, int parts) {
  if (connection.requests >= (connection.sends ? kMostRequests : kNetMaxRequests)) return nullptr;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(requests_.size()));
    requests_.emplace_back().number = free_.back();
  }
  Request& request = requests_[free_.back()];
  free_.pop_back();
  ++connection.requests;
  request.connection = &connection;
  request.parts = request.open = parts;
  request.failure = okStatus();
  return &request;
}

void Pair::giveBack(Request& request) {
  --request.connection->requests;
  request.connection = nullptr;
  free_.push_back(request.number);
}

Request* Pair::send(Connection& connection, std::uint32_t tag, const std::byte* data, Bytes size) {
  const std::lock_guard lock(mutex_);
  Request* const request = take(connection, 1);
  if (request == nullptr) return nullptr;
  request->sizes[0] = size;
  if (failed_) return request;  // `test` says so
  const channel::MessageKey key{
      .communicator = connection.number, .sequence = connection.next(tag), .stream = tag};
  const TimePoint time = now();
  mover_.saw(&connection, size, time);
  fabric_->postSend(other(), key, data, size, tokenOf(*request, 0), connection.device);
  bytesUnpolled_ += size;
  const bool looks = ++sendsUnpolled_ >= kMostSendsUnpolled ||
                     bytesUnpolled_ >= settings_.options.chunkBytes ||
                     time - polled_ >= kLongestUnpolled;
  if (looks) {
    poll(time);
  } else {
    push(time);
  }
  return request;
}

Request* Pair::receive(Connection& connection, std::span<const Buffer> buffers) {
  const std::lock_guard lock(mutex_);
  Request* const request = take(connection, static_cast<int>(buffers.size()));
  if (request == nullptr) return nullptr;
  for (std::size_t part = 0; part < buffers.size(); ++part) {
    const Buffer& buffer = buffers[part];
    const channel::MessageKey key{.communicator = connection.number,
                                  .sequence = connection.next(buffer.tag),
                                  .stream = buffer.tag};
    const std::uint64_t token = tokenOf(*request, static_cast<int>(part));
    const EagerReceives::Claimed claimed = eager_.claim(key, {token, buffer.data, buffer.capacity});
    // What has come is there, also when the peer has ended since. A link that has ended takes
    // nothing else, and `test` says that.
    switch (claimed.claim) {
      case EagerReceives::Claim::kNone:
        fabric_->postReceive(other(), key, buffer.data, buffer.capacity, token);
        break;
      case EagerReceives::Claim::kArrived:
        finish(claimed.arrived);
        break;
      case EagerReceives::Claim::kWaits:
        fabric_->expect(other(), claimed.slot);
        break;
    }
  }
  request->tag = buffers.front().tag;
  if (failed_) return request;
  if (buffers.size() == 1) postAhead(connection, request->tag);
  const TimePoint time = now();
  mover_.saw(&connection, 0, time);
  push(time);  // `test` looks whether it has come
  return request;
}

std::size_t Pair::postedAhead() const {
  const std::lock_guard lock(mutex_);
  return eager_.open();
}

void Pair::postAhead(const Connection& connection, std::uint32_t tag) {
  while (const auto post = eager_.next(connection.stream(tag), connection.count(tag))) {
    eager_.posted(post->number, fabric_->postEagerReceive(other(), post->key, post->memory,
                                                          post->capacity, kEager | post->number));
  }
}

Result<bool> Pair::test(Request& request, int* sizes) {
  const std::lock_guard lock(mutex_);
  const bool inVain = request.open > 0 && closedUnusedThere(*request.connection);
  if (inVain) closeStreams(*request.connection);
  if (request.open > 0) poll(now());
  if (request.open > 0) {
    if (failed_) return withReason(failure_, FirstFailure::Kind::kCause);
    return false;
  }
  if (!request.failure.ok()) {
    if (closedUnusedThere(*request.connection)) {
      request.failure = errorf(Code::kAborted, "{} has closed this connection", settings_.peer);
    }
    const Status failure = withReason(request.failure, FirstFailure::Kind::kConsequence);
    giveBack(request);
    return failure;
  }
  Bytes& moved = request.connection->sends ? account_.sent : account_.received;
  for (int part = 0; part < request.parts; ++part) {
    if (sizes != nullptr) sizes[part] = static_cast<int>(request.sizes[part]);
    moved += request.sizes[part];
  }
  if (!request.connection->sends) {
    mover_.saw(request.connection, request.sizes[0], served_);
    if (request.parts == 1) eager_.got(request.connection->stream(request.tag), request.sizes[0]);
  }
  giveBack(request);
  return true;
}

/// Of this connection, or of any.
bool Pair::underWay(const Connection* connection) const {
  return std::ranges::any_of(requests_, [&](const Request& request) {
    return request.connection != nullptr && request.open > 0 &&
           (connection == nullptr || request.connection == connection);
  });
}

void Pair::closeStreams(const Connection& connection) {
  if (failed_) return;
  for (const auto& [tag, count] : connection.counts) {
    const channel::StreamKey stream{.communicator = connection.number, .stream = tag};
    (void)(connection.sends ? fabric_->closeSends(other(), stream)
                            : fabric_->closeReceives(other(), stream));
  }
}

bool Pair::close(Connection& connection) {
  const std::lock_guard lock(mutex_);
  // Before it hears that the connection ends: words may come after what was sent later.
  if (tellFailure()) {
    const TimePoint until = now() + kTellTime;
    while (!failed_ && !fabric_->told(other()) && now() < until) poll(now(), kIdle);
  }
  closeStreams(connection);
  if (!failed_ && started_ && connection.counts.empty()) {
    fabric_->tell(other(), ClosedUnused::wordOf(connection.number, connection.sends));
  }
  const TimePoint deadline = now() + kCloseTime;
  do {
    poll(now());  // brings the ends of what was withdrawn, and tells the other end
  } while (!failed_ && underWay(&connection) && now() < deadline);
  if (!failed_ && underWay(&connection)) {
    fail(errorf(Code::kAborted,
                "a connection with {} was closed, and a rail may still touch its memory",
                settings_.peer));
  }
  if (!connection.sends) eager_.forget(connection.number);
  closedUnused_.forget(connection.number, connection.sends);
  for (Request& request : requests_) {
    if (request.connection == &connection) giveBack(request);
  }
  return --open_ == 0;
}

template <typename Call>
void Pair::serve(TimePoint now, const Call& call) {
  served_ = std::max(served_, now);
  if (failed_) return;
  fabric_->setMover(mover_.at(now));
  serving_ = true;
  const Status status = call();
  serving_ = false;
  if (!status.ok()) fail(status);
  if (!failure_.ok()) end();
}

/// What was posted goes; what has come waits for the next poll.
void Pair::push(TimePoint now) {
  serve(now, [&] {
    fabric_->push();
    return okStatus();
  });
}

void Pair::poll(TimePoint now, Duration timeout) {
  polled_ = now;
  sendsUnpolled_ = 0;
  bytesUnpolled_ = 0;
  serve(now, [&] { return fabric_->poll(timeout); });
}

bool Pair::tend(TimePoint now) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  // A call takes so long at most; the other end, which may have heard it, may call back as long.
  if (!otherIncarnation_) return now - wanted_ < 2 * settings_.options.giveUp;
  tellFailure();
  if (now - polled_ >= kIdle) poll(now);
  (void)givenUp(now);
  if (traces() && started_ && !failed_ && account_.history.due(now)) {
    account_.history.sample(now, fabric_->bytesSentByRail(other()));
  }
  if (departed_ && !underWay(nullptr)) {
    fail(errorf(Code::kAborted, "{} has ended", settings_.peer));
  }
  return !failed_;
}

bool Pair::drain(TimePoint deadline, bool unused) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (failed_ || !started_ || departed_ || fabric_->delivered(other())) return true;
      if (unused && open_ > 0) return true;
      const TimePoint time = now();
      if (time >= deadline) return false;
      poll(time);
    }
    std::this_thread::sleep_for(kDrainPause);  // who connects meanwhile gets the lock
  }
}

void Pair::sayGoodbye(TimePoint deadline) {
  const std::lock_guard lock(mutex_);
  if (failed_ || !started_) return;
  tellFailure();
  fabric_->tell(other(), std::as_bytes(std::span(kGoodbye)));
  while (!failed_ && !fabric_->told(other()) && now() < deadline) poll(now(), kIdle);
}

void Pair::abandon() {
  const std::lock_guard lock(mutex_);
  if (failed_) return;
  if (failure_.ok()) failure_ = errorf(Code::kAborted, "this process ends");
  end();
}

void Pair::fail(const Status& why) {
  if (!failure_.ok()) return;
  failure_ = why;
  if (!departed_) {
    spdlog::warn("{}", why.message());
    account_.failure = why.message();
    happened(telemetry::EventKind::kLinkFailed, -1, now());
  }
  if (!serving_) end();  // the fabric does not expect to be shut down from inside its calls
}

/// From now on nothing reads or writes what was posted.
void Pair::end() {
  if (failed_) return;
  count(account_);
  fabric_->shutDown();
  failed_.store(true, std::memory_order_release);
}

void Pair::count(Account& account) const {
  if (!otherIncarnation_) return;
  account.counters = fabric_->counters();
  account.eager = eager_.taken();
  account.sentByRail = fabric_->bytesSentByRail(other());
  for (const fabric::Nic& nic : fabric_->nics()) account.devices.push_back(nic.device);
  if (traces()) account.history.sample(now(), account.sentByRail);
}

Pair::Account Pair::account() const {
  const std::lock_guard lock(mutex_);
  Account account = account_;
  if (!failed_) count(account);
  return account;
}

// --- what the fabric tells, from inside its calls ---

void Pair::partDone(std::uint64_t token, Bytes length) {
  Request& request = requests_[token >> kPartBits];
  request.sizes[token & ((1U << kPartBits) - 1)] = length;
  --request.open;
}

void Pair::sendDone(int /*peer*/, std::uint64_t token) {
  partDone(token, requests_[token >> kPartBits].sizes[0]);
}

void Pair::finish(const EagerReceives::Arrived& arrived) {
  if (!arrived.failure.ok()) {
    requests_[arrived.wanted.token >> kPartBits].failure = arrived.failure;
  }
  partDone(arrived.wanted.token, arrived.length);
}

void Pair::receiveDone(int /*peer*/, std::uint64_t token, Bytes length) {
  if ((token & kEager) == 0) return partDone(token, length);
  const auto arrived = eager_.arrived(static_cast<std::uint32_t>(token & ~kEager), length);
  if (arrived) finish(*arrived);
}

void Pair::sendFailed(int /*peer*/, std::uint64_t token, const Status& why) {
  requests_[token >> kPartBits].failure = why;
  partDone(token, 0);
}

void Pair::receiveFailed(int peer, std::uint64_t token, const Status& why) {
  if ((token & kEager) == 0) return sendFailed(peer, token, why);
  const auto number = static_cast<std::uint32_t>(token & ~kEager);
  if (why.code() != Code::kInvalidArgument) {
    if (const auto arrived = eager_.ended(number, why)) finish(*arrived);
    return;
  }
  if (const auto it = eager_.refused(number)) {
    fabric_->postReceive(peer, it->key, it->wanted.data, it->wanted.capacity, it->wanted.token);
  }
}

void Pair::wordArrived(int /*peer*/, std::span<const std::byte> word) {
  if (std::ranges::equal(word, std::as_bytes(std::span(kGoodbye)))) departed_ = now();
  (void)heard_.take(word, now());
  closedUnused_.take(word);
}

}  // namespace faultline::nccl
