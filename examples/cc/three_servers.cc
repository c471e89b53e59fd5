// A cluster of one parameter server and two workers, all in this process. The
// constants live on the parameter server; either worker multiplies them.
//
//   three_servers                starts the servers
//   three_servers --run=worker0  prints 12
//   three_servers --run=worker1  prints 40
#include "examples/cc/example.h"

using namespace sluice;

static absl::Status Run(const std::string& who,
                        const std::vector<std::string>& hosts) {
  if (hosts.size() != 3) return InvalidArgument("--hosts must name three");
  const ClusterSpec cluster = {{"ps", {hosts[0]}},
                               {"worker", {hosts[1], hosts[2]}}};
  SLUICE_ASSIGN_OR_RETURN(auto ps, Server::Create(cluster, "ps", 0));
  SLUICE_ASSIGN_OR_RETURN(auto worker0, Server::Create(cluster, "worker", 0));
  SLUICE_ASSIGN_OR_RETURN(auto worker1, Server::Create(cluster, "worker", 1));

  Graph graph;
  const Scope root(graph);
  const Scope on_ps = root.Device("/job:ps/task:0");
  Output a = ops::Const(on_ps, 3.0f);
  const Output b = ops::Const(on_ps, 4.0f);
  if (who.empty()) return absl::OkStatus();

  const bool second = who == "worker1";
  if (second) a = ops::Const(root, 10.0f);
  SLUICE_ASSIGN_OR_RETURN(
      auto session,
      Session::Create({.target = (second ? worker1 : worker0)->target()},
                      graph));
  SLUICE_ASSIGN_OR_RETURN(const Tensor product, session->Eval(a * b));
  std::cout << product.scalar<float>() << std::endl;
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  return Exit(Run(Flag(argc, argv, "run"),
                  Hosts(Flag(argc, argv, "hosts",
                             "localhost:2222,localhost:2223,localhost:2224"))));
}
