#include "sluice/graph/op_registry.h"

#include <unistd.h>

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "sluice/base/logging.h"
#include "sluice/base/mutex.h"

namespace sluice {
namespace {

absl::Status ParseInto(const OpText& text, OpDef* def) {
  def->name = text.name;
  for (const char* attr : text.attrs) {
    SLUICE_ASSIGN_OR_RETURN(AttrDef parsed, ParseAttr(attr));
    def->attrs.push_back(std::move(parsed));
  }
  for (const char* input : text.inputs) {
    SLUICE_ASSIGN_OR_RETURN(ArgDef parsed, ParseArg(input, def->attrs));
    def->inputs.push_back(std::move(parsed));
  }
  for (const char* output : text.outputs) {
    SLUICE_ASSIGN_OR_RETURN(ArgDef parsed, ParseArg(output, def->attrs));
    def->outputs.push_back(std::move(parsed));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OpInfo>> Parse(const OpText& text) {
  auto info = std::make_unique<OpInfo>(text.info);
  SLUICE_RETURN_IF_ERROR(ParseInto(text, &info->def));
  return info;
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace

struct OpRegistry::State {
  struct Entry {
    OpText text;
    std::unique_ptr<OpInfo> parsed;
  };
  Mutex mu;
  absl::flat_hash_map<std::string, Entry> entries SLUICE_GUARDED_BY(mu);
};

OpRegistry& OpRegistry::Global() {
  static OpRegistry* registry = new OpRegistry;
  return *registry;
}

OpRegistry::State& OpRegistry::state() {
  static State* state = new State;
  return *state;
}

void OpRegistry::Add(OpText text) {
  MutexLock lock(state().mu);
  const std::string name = text.name;
  const bool added =
      state()
          .entries.try_emplace(name, State::Entry{std::move(text), nullptr})
          .second;
  SLUICE_CHECK(added) << "op " << name << " is registered twice";
}

const OpInfo* OpRegistry::Find(std::string_view name) {
  MutexLock lock(state().mu);
  auto it = state().entries.find(ToAbsl(name));
  if (it == state().entries.end()) return nullptr;
  State::Entry& entry = it->second;
  if (entry.parsed == nullptr) {
    auto info = Parse(entry.text);
    SLUICE_CHECK(info.ok())
        << entry.text.name << ": " << info.status().message();
    entry.parsed = *std::move(info);
  }
  return entry.parsed.get();
}

absl::StatusOr<const OpInfo*> OpRegistry::Lookup(std::string_view name) {
  if (const OpInfo* info = Find(name)) return info;
  return NotFound("Op type not registered '", name, "' in binary running on ",
                  HostName(),
                  ". Make sure the Op and Kernel are registered in the binary "
                  "running in this process.");
}

std::vector<std::string> OpRegistry::Names() {
  std::vector<std::string> names;
  {
    MutexLock lock(state().mu);
    for (const auto& [name, entry] : state().entries) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

absl::Status OpRegistry::AddDefinition(OpDef def) {
  MutexLock lock(state().mu);
  auto [it, added] = state().entries.try_emplace(def.name);
  if (!added) {
    if (it->second.parsed == nullptr) {
      SLUICE_ASSIGN_OR_RETURN(it->second.parsed, Parse(it->second.text));
    }
    if (it->second.parsed->def == def) return absl::OkStatus();
    return AlreadyExists("Op with name ", def.name,
                         " is registered already with another definition");
  }
  it->second.parsed = std::make_unique<OpInfo>();
  it->second.parsed->def = std::move(def);
  return absl::OkStatus();
}

}  // namespace sluice
