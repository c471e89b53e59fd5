// A variable on a server. Where a node runs is decided when it is built, so a
// device that is entered around a run changes nothing, not even one that is not
// there.
#include "examples/cc/example.h"

using namespace sluice;

static absl::Status Run() {
  Graph graph;
  const Scope root(graph);
  const Output c = ops::Const(root, "Hello, distributed TensorFlow!");
  const Variable b(root.Named("c"), RandomNormalInitializer({2, 2}, 0, 1));
  Node* init = GlobalVariablesInitializer(root);

  SLUICE_ASSIGN_OR_RETURN(auto server, Server::CreateLocal());
  SLUICE_ASSIGN_OR_RETURN(auto session,
                          Session::Create({.target = server->target()}, graph));
  SLUICE_RETURN_IF_ERROR(session->Run(init));
  for (int i = 0; i < 5; ++i) {
    const With task(root.Device(StrCat("/job:local/task:", i, "/cpu:", i)));
    if (i == 1) {
      SLUICE_ASSIGN_OR_RETURN(const Tensor value, session->Eval(b));
      PrintMatrix(value);
      continue;
    }
    SLUICE_ASSIGN_OR_RETURN(const Tensor text, session->Eval(c));
    std::cout << text.scalar<std::string>() << std::endl;
  }
  return absl::OkStatus();
}

int main() { return Exit(Run()); }
