// Masters of TensorFlow optimise a graph before they cut it, and put ops into
// it that no program can ask for. TakeApart puts ops of programs in their
// place:
//
// - _FusedMatMul: MatMul, BiasAdd and an activation
// - _UnaryOpsComposition: its ops, one after the other
// - _HostCast: Cast
// - _SwitchN: a row of Switches
//
// Fused ops that it does not know stay, and are an error of the import.
#pragma once

#include "absl/status/status.h"
#include "sluice/proto/graph.pb.h"

namespace sluice {

// INVALID_ARGUMENT if a row of ops would be much longer than what asks for it;
// `graph` is then in no particular state.
absl::Status TakeApart(pb::GraphDef* graph);

}  // namespace sluice
