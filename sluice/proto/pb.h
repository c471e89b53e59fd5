// The messages most code speaks of: graphs, tensors, options, clusters and the
// calls between tasks, as sluice::pb::GraphDef and so on.
//
// Parsing this costs more than a second per source file. A header, or a source
// that needs one message only, includes that message's own *.pb.h instead.
// Left out, because few need them: bundle, collective, control_flow, event,
// example, meta_graph, plugin_data, queue_runner, saved_object, saver,
// status_payload, struct, summary and variable.
#pragma once

#include "sluice/proto/attr_value.pb.h"
#include "sluice/proto/cluster.pb.h"
#include "sluice/proto/config.pb.h"
#include "sluice/proto/device.pb.h"
#include "sluice/proto/error_codes.pb.h"
#include "sluice/proto/graph.pb.h"
#include "sluice/proto/master.pb.h"
#include "sluice/proto/op_def.pb.h"
#include "sluice/proto/server.pb.h"
#include "sluice/proto/step_stats.pb.h"
#include "sluice/proto/tensor.pb.h"
#include "sluice/proto/types.pb.h"
#include "sluice/proto/versions.pb.h"
#include "sluice/proto/worker.pb.h"
