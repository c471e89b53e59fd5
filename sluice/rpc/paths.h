// The paths of all services on the wire.
#pragma once

#include <string>

namespace sluice::paths {

// What stubs that are generated from TensorFlow's own files call in another
// package is the same.
inline std::string Canonical(const std::string& path) {
  constexpr char kGenerated[] = "/tensorflow.grpc.";
  if (!path.starts_with(kGenerated)) return path;
  return "/tensorflow." + path.substr(sizeof(kGenerated) - 1);
}

inline constexpr char kMaster[] = "/tensorflow.MasterService/";
inline constexpr char kWorker[] = "/tensorflow.WorkerService/";

// X(METHOD) for every method of a service.
#define SLUICE_WORKER_METHODS(X) \
  X(GetStatus)                   \
  X(CreateWorkerSession)         \
  X(DeleteWorkerSession)         \
  X(RegisterGraph)               \
  X(DeregisterGraph)             \
  X(RunGraph)                    \
  X(CleanupGraph)                \
  X(CleanupAll)                  \
  X(RecvTensor)                  \
  X(Logging)                     \
  X(Tracing)                     \
  X(MarkRecvFinished)            \
  X(GetStepSequence)

#define SLUICE_MASTER_METHODS(X) \
  X(CreateSession)               \
  X(ExtendSession)               \
  X(RunStep)                     \
  X(CloseSession)                \
  X(ListDevices)                 \
  X(Reset)                       \
  X(PartialRunSetup)             \
  X(MakeCallable)                \
  X(RunCallable)                 \
  X(ReleaseCallable)

// What only Sluice has.
#define SLUICE_TASK_METHODS(X) \
  X(Status)                    \
  X(Hold)

#define SLUICE_WORKER_PATH(METHOD) \
  inline constexpr char k##METHOD[] = "/tensorflow.WorkerService/" #METHOD;
#define SLUICE_MASTER_PATH(METHOD) \
  inline constexpr char k##METHOD[] = "/tensorflow.MasterService/" #METHOD;
#define SLUICE_TASK_PATH(METHOD) \
  inline constexpr char k##METHOD[] = "/sluice.TaskService/" #METHOD;
SLUICE_WORKER_METHODS(SLUICE_WORKER_PATH)
SLUICE_MASTER_METHODS(SLUICE_MASTER_PATH)
SLUICE_TASK_METHODS(SLUICE_TASK_PATH)
#undef SLUICE_WORKER_PATH
#undef SLUICE_MASTER_PATH
#undef SLUICE_TASK_PATH

#define SLUICE_LISTED_PATH(METHOD) k##METHOD,
inline constexpr const char* kAll[] = {
    SLUICE_WORKER_METHODS(SLUICE_LISTED_PATH)
        SLUICE_MASTER_METHODS(SLUICE_LISTED_PATH)
            SLUICE_TASK_METHODS(SLUICE_LISTED_PATH)};
#undef SLUICE_LISTED_PATH

}  // namespace sluice::paths
