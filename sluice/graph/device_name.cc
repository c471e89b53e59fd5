#include "sluice/graph/device_name.h"

#include <charconv>

#include "sluice/base/status.h"

namespace sluice {
namespace {

bool Consume(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

bool ConsumeNumber(std::string_view* text, std::optional<int>* number) {
  if (Consume(text, "*")) {
    number->reset();
    return true;
  }
  if (text->starts_with('-')) return false;  // Also -0.
  int value = 0;
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc()) return false;
  text->remove_prefix(end - text->data());
  *number = value;
  return true;
}

bool ConsumeName(std::string_view* text, std::optional<std::string>* name) {
  if (Consume(text, "*")) {
    name->reset();
    return true;
  }
  size_t n = 0;
  while (n < text->size() && (isalnum(static_cast<unsigned char>((*text)[n])) ||
                              (*text)[n] == '_')) {
    ++n;
  }
  if (n == 0 || !isalpha(static_cast<unsigned char>(text->front())))
    return false;
  *name = std::string(text->substr(0, n));
  text->remove_prefix(n);
  return true;
}

bool ConsumeDevice(std::string_view* text, DeviceName* name) {
  if (!ConsumeName(text, &name->type)) return false;
  if (name->type == "cpu") name->type = "CPU";
  if (name->type == "gpu") name->type = "GPU";
  name->id.reset();
  if (!Consume(text, ":")) return true;
  return ConsumeNumber(text, &name->id);
}

bool ConsumeComponent(std::string_view* text, DeviceName* name) {
  if (Consume(text, "/job:")) return ConsumeName(text, &name->job);
  if (Consume(text, "/replica:")) return ConsumeNumber(text, &name->replica);
  if (Consume(text, "/task:")) return ConsumeNumber(text, &name->task);
  if (Consume(text, "/device:")) return ConsumeDevice(text, name);
  for (std::string_view legacy : {"/cpu:", "/CPU:", "/gpu:", "/GPU:"}) {
    if (Consume(text, legacy)) {
      name->type = legacy[1] == 'c' || legacy[1] == 'C' ? "CPU" : "GPU";
      return ConsumeNumber(text, &name->id);
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<DeviceName> DeviceName::Parse(std::string_view text) {
  DeviceName name;
  if (text.empty() || text == "/") return name;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (!ConsumeComponent(&rest, &name)) {
      return InvalidArgument("Malformed device specification '", text, "'");
    }
  }
  return name;
}

std::string DeviceName::ToString() const {
  std::string text;
  if (job) StrAppend(&text, "/job:", *job);
  if (replica) StrAppend(&text, "/replica:", *replica);
  if (task) StrAppend(&text, "/task:", *task);
  if (type) {
    StrAppend(&text, "/device:", *type, ":");
    if (id) {
      StrAppend(&text, *id);
    } else {
      text += '*';
    }
  }
  return text;
}

bool DeviceName::Covers(const DeviceName& full) const {
  return (!job || job == full.job) && (!replica || replica == full.replica) &&
         (!task || task == full.task) && (!type || type == full.type) &&
         (!id || id == full.id);
}

void DeviceName::FillFrom(const DeviceName& other) {
  if (!job) job = other.job;
  if (!replica) replica = other.replica;
  if (!task) task = other.task;
  if (!type) type = other.type;
  if (!id) id = other.id;
}

void DeviceName::OverrideWith(const DeviceName& other) {
  DeviceName merged = other;
  merged.FillFrom(*this);
  *this = merged;
}

std::string DeviceName::TaskName() const {
  DeviceName only = *this;
  only.type.reset();
  only.id.reset();
  return only.ToString();
}

bool IsValidJobName(std::string_view name) {
  std::optional<std::string> parsed;
  return ConsumeName(&name, &parsed) && parsed && name.empty();
}

std::string_view TaskOf(std::string_view full_device) {
  const size_t at = full_device.find("/device:");
  return at == std::string_view::npos ? full_device : full_device.substr(0, at);
}

}  // namespace sluice
