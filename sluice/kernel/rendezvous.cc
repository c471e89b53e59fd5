#include "sluice/kernel/rendezvous.h"

#include <charconv>
#include <deque>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "sluice/base/mutex.h"
#include "sluice/base/status.h"
#include "sluice/kernel/variable.h"

namespace sluice {

absl::StatusOr<RendezvousKey> RendezvousKey::Parse(std::string_view key) {
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(key), ';');
  RendezvousKey parsed;
  if (parts.size() != 5) {
    return InvalidArgument("Invalid  rendezvous key: ", key);
  }
  for (const std::string& part : parts) {
    if (part.empty()) return InvalidArgument("Invalid  rendezvous key: ", key);
  }
  auto src = DeviceName::Parse(parts[0]);
  auto dst = DeviceName::Parse(parts[2]);
  const std::string& hex = parts[1];
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(),
                                            parsed.src_incarnation, 16);
  if (!src.ok() || !src->full() || !dst.ok() || !dst->full() ||
      error != std::errc() || end != hex.data() + hex.size()) {
    return InvalidArgument("Invalid  rendezvous key: ", key);
  }
  parsed.src = *std::move(src);
  parsed.src_text = parts[0];
  parsed.dst = *std::move(dst);
  parsed.dst_text = parts[2];
  parsed.edge = parts[3];
  parsed.frame_and_iter = parts[4];
  return parsed;
}

std::string RendezvousKeyPrefix(std::string_view src_device,
                                uint64_t src_incarnation,
                                std::string_view dst_device,
                                std::string_view edge) {
  return StrCat(src_device, ";", absl::StrFormat("%016x", src_incarnation), ";",
                dst_device, ";", edge, ";");
}

namespace {

// Parcels that arrive one by one, given away together.
struct Gathering {
  Mutex mu;
  std::vector<Parcel> parcels SLUICE_GUARDED_BY(mu);
  absl::Status status SLUICE_GUARDED_BY(mu);
  size_t left SLUICE_GUARDED_BY(mu);
  Rendezvous::GroupDone done;

  Gathering(size_t count, Rendezvous::GroupDone d)
      : parcels(count), left(count), done(std::move(d)) {}

  void Put(size_t at, absl::StatusOr<Parcel> parcel) {
    absl::StatusOr<std::vector<Parcel>> result;
    {
      MutexLock lock(mu);
      if (parcel.ok()) {
        parcels[at] = *std::move(parcel);
      } else if (status.ok()) {
        status = parcel.status();
      }
      if (--left > 0) return;
      if (status.ok()) {
        result = std::move(parcels);
      } else {
        result = status;
      }
    }
    done(std::move(result));
  }
};

}  // namespace

void Rendezvous::RecvGroupAsync(std::span<const std::string> keys,
                                GroupDone done) {
  auto gathering = std::make_shared<Gathering>(keys.size(), std::move(done));
  for (size_t i = 0; i < keys.size(); ++i) {
    RecvAsync(keys[i], [gathering, i](absl::StatusOr<Parcel> parcel) {
      gathering->Put(i, std::move(parcel));
    });
  }
}

namespace {

// What a taker gets.
Parcel Opened(Parcel parcel) {
  if (!parcel.variable) return parcel;
  parcel.tensor = static_cast<const VariableState&>(*parcel.variable).Read();
  parcel.variable = nullptr;
  return parcel;
}

}  // namespace

struct LocalRendezvous::State {
  // Either values that nobody took yet or receivers that wait; never both.
  struct Entry {
    std::deque<Parcel> parcels;
    std::deque<RecvDone> waiting;
  };
  mutable Mutex mu;
  absl::flat_hash_map<std::string, Entry> entries SLUICE_GUARDED_BY(mu);
  absl::Status aborted SLUICE_GUARDED_BY(mu);
};

LocalRendezvous::LocalRendezvous() : state_(std::make_unique<State>()) {}
LocalRendezvous::~LocalRendezvous() {
  Abort(Cancelled("The rendezvous ended"));
}

absl::Status LocalRendezvous::Send(std::string_view key, Parcel parcel) {
  RecvDone done;
  {
    MutexLock lock(state_->mu);
    if (!state_->aborted.ok()) return state_->aborted;
    auto it = state_->entries.find(ToAbsl(key));
    if (it == state_->entries.end()) {
      it = state_->entries.try_emplace(std::string(key)).first;
    }
    if (it->second.waiting.empty()) {
      it->second.parcels.push_back(std::move(parcel));
      return absl::OkStatus();
    }
    done = std::move(it->second.waiting.front());
    it->second.waiting.pop_front();
    if (it->second.waiting.empty()) state_->entries.erase(it);
  }
  done(Opened(std::move(parcel)));
  return absl::OkStatus();
}

void LocalRendezvous::RecvAsync(std::string_view key, RecvDone done) {
  Parcel parcel;
  absl::Status aborted;
  {
    MutexLock lock(state_->mu);
    aborted = state_->aborted;
    if (aborted.ok()) {
      auto it = state_->entries.find(ToAbsl(key));
      if (it == state_->entries.end()) {
        it = state_->entries.try_emplace(std::string(key)).first;
      }
      if (it->second.parcels.empty()) {
        it->second.waiting.push_back(std::move(done));
        return;
      }
      parcel = std::move(it->second.parcels.front());
      it->second.parcels.pop_front();
      if (it->second.parcels.empty()) state_->entries.erase(it);
    }
  }
  if (!aborted.ok()) {
    done(aborted);
  } else {
    done(Opened(std::move(parcel)));
  }
}

void LocalRendezvous::Abort(absl::Status status) {
  std::map<std::string, State::Entry> entries;  // Ended in a fixed order.
  {
    MutexLock lock(state_->mu);
    if (!state_->aborted.ok()) return;
    state_->aborted = status.ok() ? Cancelled("aborted") : status;
    for (auto& [key, entry] : state_->entries) {
      entries.emplace(key, std::move(entry));
    }
    state_->entries.clear();
    status = state_->aborted;
  }
  for (auto& [key, entry] : entries) {
    for (RecvDone& done : entry.waiting) done(status);
  }
}

std::vector<std::string> LocalRendezvous::Waiting() const {
  std::vector<std::string> keys;
  MutexLock lock(state_->mu);
  for (const auto& [key, entry] : state_->entries) {
    if (!entry.waiting.empty()) keys.push_back(key);
  }
  return keys;
}

}  // namespace sluice
