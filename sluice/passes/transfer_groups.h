// GroupTransfers: which values may cross from one device to another in one
// message instead of one each.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/graph/graph.h"

namespace sluice {

// An output of a node that some node in the part `to` takes.
struct Transfer {
  Output value;
  int to = 0;
  std::string device;  // Of that node.
};
using TransferGroup = std::vector<Transfer>;

// Whether `input` is a variable that `reader` must read as late as if both were
// on one device: when everything else that it waits for is there.
bool IsReadLate(const Node& reader, Output input);

// A group waits for its last member, so none of them may depend on another
// group that waits for this one: all have crossed equally many borders before,
// on the way that crosses most. A value that is only wanted together with a
// later one from the same device counts as that one. Left out is what might
// wait for something else (a queue, a loop), and what is large or of a size
// unknown until it is there: it had better not keep others waiting. Groups have
// at least two members, with one source and one destination device.
//
// `part` gives the part of each node, by id.
absl::StatusOr<std::vector<TransferGroup>> GroupTransfers(
    const Graph& graph, const std::vector<int>& part);

}  // namespace sluice
