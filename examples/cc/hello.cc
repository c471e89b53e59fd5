// A server in this process and a session on it.
#include "examples/cc/example.h"

using namespace sluice;

static absl::Status Run() {
  Graph graph;
  const Output c = ops::Const(Scope(graph), "Hello, distributed TensorFlow!");
  SLUICE_ASSIGN_OR_RETURN(auto server, Server::CreateLocal());
  SLUICE_ASSIGN_OR_RETURN(auto session,
                          Session::Create({.target = server->target()}, graph));
  SLUICE_ASSIGN_OR_RETURN(const Tensor text, session->Eval(c));
  std::cout << text.scalar<std::string>() << std::endl;
  return absl::OkStatus();
}

int main() { return Exit(Run()); }
