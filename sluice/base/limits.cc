#include "sluice/base/limits.h"

#include <charconv>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

struct Entry {
  std::string_view name;
  int64_t Limits::*value;
  int64_t most;  // What the libraries below can take.
  const char* meaning;
};

constexpr Entry kEntries[] = {
    {"message_bytes", &Limits::message_bytes, INT_MAX, "bytes of one request"},
    {"arriving_bytes", &Limits::arriving_bytes, INT_MAX,
     "bytes of all requests that are arriving by gRPC"},
    {"metadata_bytes", &Limits::metadata_bytes, INT_MAX,
     "bytes of the headers of one call"},
    {"streams", &Limits::streams, INT_MAX,
     "open calls of one connection; more wait"},
    {"handshake_ms", &Limits::handshake_ms, INT_MAX,
     "milliseconds a peer may take to connect"},
    {"sessions", &Limits::sessions, INT_MAX, "open sessions"},
    {"graphs", &Limits::graphs, INT_MAX, "registered graphs"},
    {"graph_nodes", &Limits::graph_nodes, INT_MAX,
     "nodes of a session's graph"},
    {"graph_bytes", &Limits::graph_bytes, INT_MAX,
     "bytes of a session's graph, as they were sent"},
    {"callables", &Limits::callables, INT_MAX,
     "callables and open partial runs of a session"},
};

// 0 for an unknown suffix.
int64_t Factor(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix == "K") return int64_t{1} << 10;
  if (suffix == "M") return int64_t{1} << 20;
  if (suffix == "G") return int64_t{1} << 30;
  return 0;
}

absl::Status SetOne(std::string_view text, Limits* limits) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  for (const Entry& entry : kEntries) {
    if (entry.name != name) continue;
    const std::string_view value =
        equals == std::string_view::npos ? "" : text.substr(equals + 1);
    int64_t number = 0;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), number);
    const int64_t factor =
        Factor(value.substr(static_cast<size_t>(end - value.data())));
    // 2G is one more than these can be, and meant as "all there is".
    if (error == std::errc() && factor > 0 && number > 0 &&
        number <= entry.most / factor + 1) {
      limits->*entry.value = std::min(number * factor, entry.most);
      return absl::OkStatus();
    }
    return InvalidArgument("The limit ", name, " is a number from 1 to ",
                           entry.most, ", which may end in K, M or G; not '",
                           value, "'");
  }
  std::string names;
  for (const Entry& entry : kEntries) StrAppend(&names, " ", entry.name);
  return InvalidArgument("There is no limit '", name, "'; there are:", names);
}

}  // namespace

absl::Status Limits::Set(std::string_view text) {
  do {
    const size_t comma = std::min(text.find(','), text.size());
    SLUICE_RETURN_IF_ERROR(SetOne(text.substr(0, comma), this));
    text.remove_prefix(std::min(comma + 1, text.size()));
  } while (!text.empty());
  return absl::OkStatus();
}

absl::StatusOr<Limits> Limits::FromEnvironment() {
  Limits limits;
  if (const char* text = std::getenv("SLUICE_LIMITS")) {
    if (absl::Status status = limits.Set(text); !status.ok()) {
      return Annotate(status, "SLUICE_LIMITS:");
    }
  }
  return limits;
}

std::string Limits::Describe() const {
  std::string text;
  for (const Entry& entry : kEntries) {
    text += absl::StrFormat("%-15s %-11d %s\n", ToAbsl(entry.name),
                            this->*entry.value, entry.meaning);
  }
  return text;
}

absl::Status OverLimit(std::string_view what, std::string_view limit,
                       int64_t value) {
  return ResourceExhausted(what, " is over the limit ", limit, "=", value,
                           " of this server; start it with `sluice server "
                           "--limit ",
                           limit, "=N` or SLUICE_LIMITS=", limit,
                           "=N to raise it");
}

}  // namespace sluice
