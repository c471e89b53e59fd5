#include "sluice/master/partial_run.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "sluice/base/status.h"

namespace sluice {
namespace {

// Ticks off `name`; `kind` is "feed" or "fetch", `verb` what happened to it.
absl::Status Tick(const std::string& name, std::string_view kind,
                  std::string_view verb,
                  absl::flat_hash_map<std::string, bool>* names) {
  auto it = names->find(name);
  if (it == names->end()) {
    return InvalidArgument("The ", kind, " ", name,
                           " was not specified in partial_run_setup.");
  }
  if (it->second) {
    return InvalidArgument("The ", kind, " ", name, " has already been ", verb,
                           ".");
  }
  it->second = true;
  return absl::OkStatus();
}

}  // namespace

PartialRunProgress::PartialRunProgress(const StepSignature& signature) {
  for (const std::string& name : signature.feeds) feeds_[name] = false;
  for (const std::string& name : signature.fetches) fetches_[name] = false;
}

bool PartialRunProgress::complete() const {
  const auto came = [](const auto& entry) { return entry.second; };
  return std::ranges::all_of(feeds_, came) &&
         std::ranges::all_of(fetches_, came);
}

absl::Status PartialRunProgress::Advance(const Graph& graph,
                                         const PartialRunArgs& args) {
  for (const std::string& name : args.feed_names) {
    SLUICE_RETURN_IF_ERROR(Tick(name, "feed", "fed", &feeds_));
  }
  for (const std::string& name : args.fetch_names) {
    SLUICE_RETURN_IF_ERROR(Tick(name, "fetch", "fetched", &fetches_));
    SLUICE_RETURN_IF_ERROR(CheckComputable(graph, name));
  }
  return absl::OkStatus();
}

absl::Status PartialRunProgress::CheckComputable(
    const Graph& graph, const std::string& fetch) const {
  absl::flat_hash_map<std::pair<const Node*, int>, bool> fed;
  absl::flat_hash_set<const Node*> seen;
  for (const auto& [name, came] : feeds_) {
    SLUICE_ASSIGN_OR_RETURN(Output output, graph.FindOutput(name));
    fed[{output.node, output.index}] = came;
  }
  SLUICE_ASSIGN_OR_RETURN(Output fetched, graph.FindOutput(fetch));
  std::vector<const Node*> stack = {fetched.node};
  while (!stack.empty()) {
    const Node& node = *stack.back();
    stack.pop_back();
    if (!seen.insert(&node).second) continue;
    for (const Output& input : node.inputs()) {
      auto it = fed.find({input.node, input.index});
      if (it == fed.end()) {
        stack.push_back(input.node);
      } else if (!it->second) {
        return InvalidArgument(
            "Fetch ", fetch,
            " can't be computed from the feeds that have been fed so far.");
      }
    }
    for (const Node* control : node.control_inputs()) stack.push_back(control);
  }
  return absl::OkStatus();
}

absl::Status NoSuchPartialRun(bool local_session) {
  return InvalidArgument(
      local_session
          ? "Must run 'setup' before performing partial runs!"
          : "Must run PartialRunSetup before performing partial runs");
}

void ExchangeTensors(const std::shared_ptr<Rendezvous>& tensors,
                     const DeviceInfo& client, const PartialRunArgs& args,
                     absl::AnyInvocable<void(absl::Status)> done) {
  const auto key = [&](const std::string& name) {
    return StrCat(
        RendezvousKeyPrefix(client.text, client.incarnation, client.text, name),
        "0:0");
  };
  // Counts the fetches down; the last one reports.
  struct Exchange {
    explicit Exchange(size_t count) : left(count) {}

    Mutex mu;
    size_t left SLUICE_GUARDED_BY(mu);
    absl::Status status SLUICE_GUARDED_BY(mu);
    absl::AnyInvocable<void(absl::Status)> done;

    void Add(const absl::Status& result) {
      absl::Status all;
      {
        MutexLock lock(mu);
        if (status.ok()) status = result;
        if (--left > 0) return;
        all = status;
      }
      done(std::move(all));
    }
  };
  auto exchange = std::make_shared<Exchange>(args.fetch_names.size() + 1);
  exchange->done = std::move(done);
  absl::Status sent;
  for (size_t i = 0; i < args.feed_names.size() && sent.ok(); ++i) {
    sent = tensors->Send(key(args.feed_names[i]), {args.feeds[i], false});
  }
  for (size_t i = 0; i < args.fetch_names.size(); ++i) {
    const std::string name = args.fetch_names[i];
    tensors->RecvAsync(key(name), [exchange, name, out = &args.fetches[i]](
                                      absl::StatusOr<Parcel> parcel) {
      if (!parcel.ok()) {
        exchange->Add(parcel.status());
      } else if (parcel->dead) {
        exchange->Add(
            Internal("The tensor returned for ", name, " was not valid."));
      } else {
        *out = std::move(parcel->tensor);
        exchange->Add(absl::OkStatus());
      }
    });
  }
  exchange->Add(sent);
}

}  // namespace sluice
