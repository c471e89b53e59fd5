// Contexts of cond and while as a meta graph records them, so that gradients of
// an imported graph find them again.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/graph/control_flow.h"
#include "sluice/proto/control_flow.pb.h"

namespace sluice {

// With the contexts inside of it.
void ControlFlowToProto(const ControlFlowContext& context,
                        pb::ControlFlowContextDef* def);

// The context of nodes that are in `graph` already, below `scope` (empty, or a
// name without a last '/'), and those inside of it. The nodes are made part of
// it. An error if a name is not there.
absl::StatusOr<std::shared_ptr<ControlFlowContext>> ControlFlowFromProto(
    const pb::ControlFlowContextDef& def, const std::string& scope,
    Graph* graph);

}  // namespace sluice
