// Two tasks share a step: one makes random matrices, the other sums them up.
#include "examples/cc/example.h"

using namespace sluice;

static absl::Status Run(const std::vector<std::string>& hosts) {
  const ClusterSpec cluster = {{"local", hosts}};
  // A server goes on serving when its handle is dropped.
  SLUICE_ASSIGN_OR_RETURN(auto server, Server::Create(cluster, "local", 0));
  SLUICE_ASSIGN_OR_RETURN(server, Server::Create(cluster, "local", 1));

  Graph graph;
  const Scope root(graph);
  const Scope first = root.Device("/job:local/task:0");
  std::vector<Output> matrices;
  for (int i = 0; i < 2; ++i) {
    matrices.push_back(ops::RandomNormal(first, {25, 25}));
  }
  const Scope second = root.Device("/job:local/task:1");
  std::vector<Output> sums;
  for (const Output& matrix : matrices) {
    sums.push_back(ops::ReduceSum(second, matrix));
  }
  const Output total = ops::AddN(second, sums);

  SLUICE_ASSIGN_OR_RETURN(auto session,
                          Session::Create({.target = server->target()}, graph));
  SLUICE_ASSIGN_OR_RETURN(const Tensor result, session->Eval(total));
  std::cout << "Summed Values:" << result.scalar<float>() << std::endl;
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  return Exit(
      Run(Hosts(Flag(argc, argv, "hosts", "localhost:2222,localhost:2223"))));
}
