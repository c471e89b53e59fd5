#include "sluice/server/cluster_spec.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "sluice/base/status.h"
#include "sluice/proto/cluster.pb.h"

namespace sluice {

ClusterSpec::ClusterSpec(
    std::initializer_list<std::pair<std::string, std::vector<std::string>>>
        jobs) {
  for (const auto& [job, addresses] : jobs) {
    jobs_[job];
    for (size_t i = 0; i < addresses.size(); ++i) {
      AddTask(job, static_cast<int>(i), addresses[i]);
    }
  }
}

absl::StatusOr<ClusterSpec> ClusterSpec::FromProto(const pb::ClusterDef& def) {
  ClusterSpec spec;
  for (const pb::JobDef& job : def.job()) {
    if (spec.HasJob(job.name())) {
      return InvalidArgument("Duplicate job ID in cluster specification: ",
                             job.name());
    }
    spec.jobs_[job.name()];
    for (const auto& [index, address] : job.tasks()) {
      spec.AddTask(job.name(), index, address);
    }
  }
  return spec;
}

void ClusterSpec::AddTask(const std::string& job, int index,
                          const std::string& address) {
  // Blanks around a comma or a port are common in scripts.
  std::string clean;
  for (char c : address) {
    if (!isspace(static_cast<unsigned char>(c))) clean += c;
  }
  jobs_[job][index] = clean;
}

namespace {

// Left out, it would give its index, and what is done there, to the next.
absl::Status AddGiven(const std::string& job, int index,
                      const std::string& address, ClusterSpec* spec) {
  if (absl::StripAsciiWhitespace(address).empty()) {
    return InvalidArgument("Task ", index, " of job '", job,
                           "' has an empty address");
  }
  spec->AddTask(job, index, address);
  return absl::OkStatus();
}

absl::Status AddJson(const nlohmann::json& json, ClusterSpec* spec) {
  if (!json.is_object()) return InvalidArgument("A cluster is a JSON object");
  const nlohmann::json& jobs =
      json.contains("cluster") ? json["cluster"] : json;
  for (const auto& [job, tasks] : jobs.items()) {
    if (tasks.is_array()) {
      for (size_t i = 0; i < tasks.size(); ++i) {
        if (!tasks[i].is_string()) {
          return InvalidArgument("Task ", i, " of job ", job, " is no address");
        }
        SLUICE_RETURN_IF_ERROR(AddGiven(job, static_cast<int>(i),
                                        tasks[i].get<std::string>(), spec));
      }
    } else if (tasks.is_object()) {
      for (const auto& [index, address] : tasks.items()) {
        if (!address.is_string() || index.empty() ||
            index.find_first_not_of("0123456789") != std::string::npos ||
            index.size() > 9) {
          return InvalidArgument("Job ", job, " has no usable task '", index,
                                 "'");
        }
        SLUICE_RETURN_IF_ERROR(
            AddGiven(job, std::stoi(index), address.get<std::string>(), spec));
      }
    } else {
      return InvalidArgument("The tasks for job '", job,
                             "' must be a list or an object of addresses.");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ClusterSpec> ClusterSpec::Parse(std::string_view text) {
  text = ToStd(absl::StripAsciiWhitespace(ToAbsl(text)));
  ClusterSpec spec;
  if (text.starts_with('{')) {
    const nlohmann::json json =
        nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded())
      return InvalidArgument("The cluster is not valid JSON: ", text);
    SLUICE_RETURN_IF_ERROR(AddJson(json, &spec));
    return spec;
  }
  const bool bars = text.find('|') != std::string_view::npos;
  const char* between_jobs = bars ? "," : ";";
  const char* after_name = bars ? "|" : "=";
  const char* between_tasks = bars ? ";" : ",";
  for (absl::string_view job :
       absl::StrSplit(ToAbsl(text), between_jobs, absl::SkipWhitespace())) {
    const std::vector<std::string> parts = absl::StrSplit(job, after_name);
    const std::string name(absl::StripAsciiWhitespace(parts[0]));
    if (parts.size() != 2 || name.empty()) {
      return InvalidArgument("'", ToStd(job), "' is not a job; write ",
                             "ps=host:port,host:port;worker=host:port");
    }
    if (spec.HasJob(name)) {
      return InvalidArgument("Duplicate job ID in cluster specification: ",
                             name);
    }
    int index = 0;
    for (absl::string_view address : absl::StrSplit(parts[1], between_tasks)) {
      SLUICE_RETURN_IF_ERROR(
          AddGiven(name, index++, std::string(address), &spec));
    }
  }
  if (spec.empty()) return InvalidArgument("The cluster names no job");
  return spec;
}

void ClusterSpec::ToProto(pb::ClusterDef* def) const {
  for (const auto& [name, tasks] : jobs_) {
    pb::JobDef* job = def->add_job();
    job->set_name(name);
    for (const auto& [index, address] : tasks)
      (*job->mutable_tasks())[index] = address;
  }
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [name, tasks] : jobs_) names.push_back(name);
  return names;
}

int ClusterSpec::num_tasks(const std::string& job) const {
  auto it = jobs_.find(job);
  return it == jobs_.end() ? 0 : static_cast<int>(it->second.size());
}

absl::StatusOr<std::string> ClusterSpec::TaskAddress(const std::string& job,
                                                     int index) const {
  auto it = jobs_.find(job);
  if (it == jobs_.end()) {
    return InvalidArgument("No such job in cluster: '", job, "'");
  }
  auto task = it->second.find(index);
  if (task == it->second.end()) {
    return InvalidArgument("No task with index ", index, " in job '", job, "'");
  }
  return task->second;
}

absl::StatusOr<TaskConfig> TaskConfig::Parse(std::string_view text) {
  const nlohmann::json json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return InvalidArgument("TF_CONFIG is no JSON object: ", text);
  }
  TaskConfig config;
  SLUICE_ASSIGN_OR_RETURN(config.cluster, ClusterSpec::Parse(text));
  const auto task = json.find("task");
  if (task == json.end() || !task->is_object() || !task->contains("type") ||
      !(*task)["type"].is_string()) {
    return InvalidArgument(
        "TF_CONFIG names no task; it needs \"task\": {\"type\": \"worker\", "
        "\"index\": 0}, got ",
        text);
  }
  config.job = (*task)["type"].get<std::string>();
  if (const auto index = task->find("index"); index != task->end()) {
    if (!index->is_number_integer()) {
      return InvalidArgument(
          "The index of the task in TF_CONFIG is no integer: ", text);
    }
    config.task = index->get<int>();
  }
  return config;
}

absl::StatusOr<TaskConfig> TaskConfig::FromEnvironment() {
  const char* text = std::getenv("TF_CONFIG");
  if (text == nullptr) return NotFound("TF_CONFIG is not set");
  return Parse(text);
}

}  // namespace sluice
