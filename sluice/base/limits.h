// Limits: what one client can make a server hold. Generous, as they are against
// mistakes and abuse, not for sharing a machine.
#pragma once

#include <climits>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

struct Limits {
  int64_t message_bytes = INT_MAX;  // Of one request.
  // Of all requests that are arriving by gRPC; without a bound by default.
  int64_t arriving_bytes = INT_MAX;
  int64_t metadata_bytes = 64 << 10;  // Of the headers of one call.
  // Open calls of one connection; more wait at the client.
  int64_t streams = 100'000;
  // How long a peer may take to say hello, in milliseconds.
  int64_t handshake_ms = 20'000;
  int64_t sessions = 10'000;         // Open at a time.
  int64_t graphs = 100'000;          // Registered with a task at a time.
  int64_t graph_nodes = 10'000'000;  // Of a session, functions and all.
  int64_t graph_bytes = INT_MAX;     // Of a session, as its client sent it.
  // Callables and open partial runs of a session.
  int64_t callables = 100'000;

  // Sets limits by name: "sessions=100,graph_bytes=64M". K, M and G stand for
  // powers of 1024.
  absl::Status Set(std::string_view text);
  // The defaults, with what SLUICE_LIMITS says.
  static absl::StatusOr<Limits> FromEnvironment();
  // One line for each: its name, value and meaning.
  std::string Describe() const;
};

// RESOURCE_EXHAUSTED with the name of the limit, its value and how to raise it.
// `what` says what went over it: "a request of 70000000 bytes".
absl::Status OverLimit(std::string_view what, std::string_view limit,
                       int64_t value);

}  // namespace sluice
