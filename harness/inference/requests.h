#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace faultline::inference {

/// What a client asks for.
struct Request {
  int id = 0;          ///< counted over all rates of a run
  double arrival = 0;  ///< seconds after its rate began
  int prompt = 1;      ///< tokens
  int output = 1;      ///< tokens that it waits for
  bool operator==(const Request&) const = default;
};

/// How lengths vary.
enum class Spread {
  kFixed,      ///< all are the mean
  kUniform,    ///< as likely everywhere between (1 - cv) and (1 + cv) means
  kLognormal,  ///< many short ones and few long ones; cut at kLongestInMeans means
};
inline constexpr std::string_view kSpreadNames[] = {"fixed", "uniform", "lognormal"};
inline std::string_view nameOf(Spread spread) { return kSpreadNames[static_cast<int>(spread)]; }

/// A distribution of lengths, in tokens.
struct Lengths {
  Spread spread = Spread::kFixed;
  int mean = 1;
  double cv = 0;  ///< half the width over the mean (uniform), deviation over the mean (lognormal)
  static constexpr int kLongestInMeans = 4;
  bool operator==(const Lengths&) const = default;

  int longest() const;  ///< that is ever drawn
  int draw(Random& random) const;
};

/// The requests of one rate, in the order of time.
struct Arrivals {
  double qps = 0;  ///< requests per second that are offered
  std::vector<Request> requests;
  bool operator==(const Arrivals&) const = default;
};

/// `count` requests with ids from `firstId` on, as a Poisson process of `qps`: the times between
/// them are exponential, and nobody waits for an answer before he asks (open loop). Equal seeds
/// give equal requests; lengths of another distribution do not change the arrivals.
Arrivals poissonArrivals(double qps, int count, const Lengths& prompt, const Lengths& output,
                         int firstId, std::uint64_t seed);

}  // namespace faultline::inference
