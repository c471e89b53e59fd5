#include "sluice/rpc/session_uses.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>

#include "sluice/base/logging.h"
#include "sluice/base/status.h"
#include "sluice/proto/task_status.pb.h"
#include "sluice/rpc/answer.h"
#include "sluice/rpc/byte_buffer.h"

namespace sluice {

void SessionUse::BeginStep(int64_t id) {
  Touch();
  MutexLock lock(mu_);
  steps_.emplace(id, CoarseNow());
}

void SessionUse::EndStep(int64_t id) {
  Touch();
  MutexLock lock(mu_);
  steps_.erase(id);
}

std::vector<SessionUse::RunningStep> SessionUse::ListSteps() const {
  std::vector<RunningStep> list;
  MutexLock lock(mu_);
  for (const auto& [id, since] : steps_) list.push_back({id, since});
  return list;
}

bool SessionUse::held() const {
  MutexLock lock(mu_);
  return !holders_.empty();
}

void SessionUse::Hold(std::shared_ptr<ServerCall> call) {
  {
    MutexLock lock(mu_);
    if (!closed_) {
      holders_.insert(call);
      was_held_ = true;
      call = nullptr;
    }
  }
  if (call != nullptr) Answer(*call, pb::HoldResponse());
}

void SessionUse::Release(const ServerCall* call) {
  std::shared_ptr<ServerCall> released;
  {
    MutexLock lock(mu_);
    for (const auto& holder : holders_) {
      if (holder.get() == call) released = holder;
    }
    if (released == nullptr) return;
    holders_.erase(released);
    released_ = CoarseNow();
  }
  released->Fail(Cancelled("The holder went away"));
}

std::vector<std::shared_ptr<ServerCall>> SessionUse::TakeHolders() {
  MutexLock lock(mu_);
  closed_ = true;
  std::vector<std::shared_ptr<ServerCall>> taken(holders_.begin(),
                                                 holders_.end());
  holders_.clear();
  return taken;
}

std::shared_ptr<SessionUse> SessionUses::Add(const std::string& handle,
                                             std::string client,
                                             std::function<void()> end) {
  auto use =
      std::make_shared<SessionUse>(handle, std::move(client), std::move(end));
  MutexLock lock(mu_);
  uses_[handle] = use;
  return use;
}

std::shared_ptr<SessionUse> SessionUses::Find(std::string_view handle) const {
  MutexLock lock(mu_);
  const auto it = uses_.find(ToAbsl(handle));
  return it == uses_.end() ? nullptr : it->second;
}

void SessionUses::Remove(std::string_view handle) {
  std::shared_ptr<SessionUse> use;
  {
    MutexLock lock(mu_);
    const auto it = uses_.find(ToAbsl(handle));
    if (it == uses_.end()) return;
    use = std::move(it->second);
    uses_.erase(it);
  }
  for (const auto& call : use->TakeHolders()) {
    Answer(*call, pb::HoldResponse());
  }
}

std::vector<std::shared_ptr<SessionUse>> SessionUses::List() const {
  std::vector<std::shared_ptr<SessionUse>> list;
  {
    MutexLock lock(mu_);
    for (const auto& [handle, use] : uses_) list.push_back(use);
  }
  std::ranges::sort(list, {}, [](const auto& use) {
    return std::make_pair(use->opened(), use->handle());
  });
  return list;
}

bool SessionUses::Hold(std::string_view handle,
                       std::shared_ptr<ServerCall> call) {
  std::shared_ptr<SessionUse> use = Find(handle);
  if (use == nullptr) return false;
  use->Hold(call);
  // Weak: the use holds the call.
  call->OnCancel([weak = std::weak_ptr<SessionUse>(use), raw = call.get()] {
    if (const auto held = weak.lock()) held->Release(raw);
  });
  return true;
}

void SessionUses::Collect(
    const Limits& limits, SteadyTime now,
    const std::function<bool(const std::string&)>& connected) {
  for (const std::shared_ptr<SessionUse>& use : List()) {
    const auto unused = [&] { return now - use->last_use() >= limits.unused; };
    // Takes its time, so it comes first.
    const bool gone = unused() && !connected(use->client());
    const char* why = nullptr;
    {
      MutexLock lock(use->mu_);
      if (use->closed_ || !use->holders_.empty() || !use->steps_.empty()) {
        continue;
      }
      // Who uses it is there, even if it could not take hold again.
      const SteadyTime last_seen = std::max(use->released_, use->last_use());
      if (use->was_held_ && now - last_seen >= limits.released) {
        why = "its process is gone";
      } else if (!use->was_held_ && gone && unused()) {
        why = "it was not used for long and its connection is gone";
      } else {
        continue;
      }
      // Who would hold it from now on hears that it is over.
      use->closed_ = true;
    }
    SLUICE_LOG(WARNING) << "Collecting session " << use->handle() << " of "
                        << use->client() << ": " << why;
    Remove(use->handle());
    use->end_();
  }
}

namespace {

// "ipv4:127.0.0.1:4711" or "ipv6:%5B::1%5D:4711", as gRPC writes it.
std::string PeerName(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN];
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
    return StrCat("ipv4:", text, ":", ntohs(in.sin_port));
  }
  const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
  // One socket serves both families; gRPC shows the old one as such.
  if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
    inet_ntop(AF_INET, &in6.sin6_addr.s6_addr[12], text, sizeof(text));
    return StrCat("ipv4:", text, ":", ntohs(in6.sin6_port));
  }
  inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text));
  return StrCat("ipv6:%5B", text, "%5D:", ntohs(in6.sin6_port));
}

}  // namespace

absl::flat_hash_set<std::string> ConnectedPeers() {
  absl::flat_hash_set<std::string> peers;
  DIR* const descriptors = opendir("/proc/self/fd");
  if (descriptors == nullptr) return peers;
  while (const dirent* entry = readdir(descriptors)) {
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    const int fd = std::atoi(entry->d_name);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        (address.ss_family == AF_INET || address.ss_family == AF_INET6)) {
      peers.insert(PeerName(address));
    }
  }
  closedir(descriptors);
  return peers;
}

}  // namespace sluice
