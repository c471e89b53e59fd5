#include "tests/simulation/cluster.h"

#include "sluice/base/status.h"
#include "sluice/kernel/variable.h"

namespace sluice::sim {

Cluster::Cluster(uint64_t seed, bool keep_trace)
    : trace_(keep_trace), scheduler_(seed), network_(scheduler_, trace_) {
  std::vector<std::string> names;
  const auto add = [&](const char* job, int count) {
    for (int i = 0; i < count; ++i) {
      names.push_back(StrCat("/job:", job, "/replica:0/task:", i));
      addresses_[names.back()] = StrCat(job, i, ":1");
    }
  };
  add("ps", kNumPs);
  add("worker", kNumWorkers);
  for (const std::string& name : names) {
    tasks_.push_back(
        std::make_unique<Task>(scheduler_, network_, addresses_, name));
  }
}

Task* Cluster::FindTask(const std::string& address) {
  for (const auto& task : tasks_) {
    if (task->address() == address) return task.get();
  }
  return nullptr;
}

void Cluster::Start(Task& task) {
  trace_.Add(scheduler_.Now(), StrCat("start ", task.address()));
  task.Start();
  for (int i = 0; i < kNumPs; ++i) {
    if (&task != &ps(i)) continue;
    auto marks = MakeRef<RefVariable>(DType::kInt32);
    Tensor zeros(DType::kInt32, {kMarks});
    std::ranges::fill(zeros.mutable_data<int32_t>(), 0);
    marks->Assign(std::move(zeros));
    const absl::Status created = task.device().resources().Create<RefVariable>(
        "", StrCat("marks", i), std::move(marks));
    if (!created.ok()) Violate(created.ToString());
  }
}

void Cluster::Kill(Task& task) {
  trace_.Add(scheduler_.Now(), StrCat("kill ", task.address()));
  for (int i = 0; i < kNumPs; ++i) {
    if (&task == &ps(i)) AddMarks(task, i, &marks_of_ended_lives_[i]);
  }
  if (absl::Status ended = task.Kill(); !ended.ok()) {
    Violate(StrCat("leak: ", ended.message()));
  }
}

void Cluster::AddMarks(const Task& task, int ps, Marks* marks) {
  auto variable =
      task.device().resources().Lookup<RefVariable>("", StrCat("marks", ps));
  if (!variable.ok()) {
    Violate(variable.status().ToString());
    return;
  }
  const Tensor value = (*variable)->Read();
  for (int i = 0; i < kMarks; ++i) (*marks)[i] += value.data<int32_t>()[i];
}

Marks Cluster::MarksOf(int i) {
  Marks marks = marks_of_ended_lives_[i];
  if (ps(i).up()) AddMarks(ps(i), i, &marks);
  return marks;
}

std::array<Life, kNumPs> Cluster::PsLives() {
  std::array<Life, kNumPs> lives;
  for (int i = 0; i < kNumPs; ++i) lives[i] = ps(i).life();
  return lives;
}

void Cluster::Violate(const std::string& what) {
  trace_.Add(scheduler_.Now(), StrCat("VIOLATION ", what));
  violations_.push_back(what);
}

}  // namespace sluice::sim
