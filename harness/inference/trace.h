#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"
#include "harness/inference/requests.h"

namespace faultline::inference {

/// Requests from a file, and what the file was taken for.
struct RequestTrace {
  Arrivals arrivals;
  std::string format;  ///< in words: "Azure's format (TIMESTAMP, ContextTokens, GeneratedTokens)"
  int leftOut = 0;  ///< requests without a token of prompt or output, which others log as failures

  /// "2 requests in Azure's format (...); 1 without tokens is left out".
  std::string inWords() const;
};

/// Reads a request trace in one of four formats, told apart by the first line that is neither empty
/// nor a comment (#):
/// - ours: `arrival in seconds,prompt tokens,output tokens`, with or without a line of titles;
/// - Azure's (AzurePublicDataset, LLM inference 2023 and 2024): dates;
/// - BurstGPT's: seconds, columns by their titles;
/// - Mooncake's: a JSON object in each line, milliseconds.
/// CSV may have quoted cells, blanks around cells, CR LF and a byte order mark. Arrivals of the
/// others count from the first request. The rate is that between the first and the last.
/// kInvalidArgument names line and column: a first line that is none of these, a column that is not
/// known, a value that is none, a request before the one above it, more than `most` requests.
Result<RequestTrace> parseTrace(std::string_view text, std::size_t most);

}  // namespace faultline::inference
