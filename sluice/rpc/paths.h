// The paths of both services on the wire.
#pragma once

namespace sluice::paths {

inline constexpr char kMaster[] = "/tensorflow.MasterService/";
inline constexpr char kWorker[] = "/tensorflow.WorkerService/";

#define SLUICE_WORKER_PATH(METHOD) \
  inline constexpr char k##METHOD[] = "/tensorflow.WorkerService/" #METHOD;
SLUICE_WORKER_PATH(GetStatus)
SLUICE_WORKER_PATH(CreateWorkerSession)
SLUICE_WORKER_PATH(DeleteWorkerSession)
SLUICE_WORKER_PATH(RegisterGraph)
SLUICE_WORKER_PATH(DeregisterGraph)
SLUICE_WORKER_PATH(RunGraph)
SLUICE_WORKER_PATH(CleanupGraph)
SLUICE_WORKER_PATH(CleanupAll)
SLUICE_WORKER_PATH(RecvTensor)
SLUICE_WORKER_PATH(Logging)
SLUICE_WORKER_PATH(Tracing)
SLUICE_WORKER_PATH(MarkRecvFinished)
SLUICE_WORKER_PATH(GetStepSequence)
#undef SLUICE_WORKER_PATH

#define SLUICE_MASTER_PATH(METHOD) \
  inline constexpr char k##METHOD[] = "/tensorflow.MasterService/" #METHOD;
SLUICE_MASTER_PATH(CreateSession)
SLUICE_MASTER_PATH(ExtendSession)
SLUICE_MASTER_PATH(RunStep)
SLUICE_MASTER_PATH(CloseSession)
SLUICE_MASTER_PATH(ListDevices)
SLUICE_MASTER_PATH(Reset)
SLUICE_MASTER_PATH(PartialRunSetup)
SLUICE_MASTER_PATH(MakeCallable)
SLUICE_MASTER_PATH(RunCallable)
SLUICE_MASTER_PATH(ReleaseCallable)
#undef SLUICE_MASTER_PATH

}  // namespace sluice::paths
