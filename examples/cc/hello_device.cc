// A constant on the CPU of a server and a variable on a device of your choice.
//
//   hello_device                              the CPU
//   hello_device /job:local/task:0/gpu:0      a GPU, by its full name
//   hello_device /gpu:0                       a GPU
//
// Where there is no GPU, that is an error which names the devices there are,
// unless `sluice run --soft-placement` runs it.
#include "examples/cc/example.h"

using namespace sluice;

static absl::Status Run(const std::string& device) {
  SLUICE_ASSIGN_OR_RETURN(auto server, Server::CreateLocal());
  Graph graph;
  const Scope root(graph);
  const Output c = ops::Const(root.Device("/job:local/task:0/cpu:0"),
                              "Hello, distributed TensorFlow!");
  const Variable b(root.Device(device).Named("b"),
                   RandomNormalInitializer({2, 2}, 0, 1));
  Node* init = GlobalVariablesInitializer(root);

  SLUICE_ASSIGN_OR_RETURN(auto session,
                          Session::Create({.target = server->target()}, graph));
  SLUICE_RETURN_IF_ERROR(session->Run(init));
  SLUICE_ASSIGN_OR_RETURN(const Tensor text, session->Eval(c));
  std::cout << text.scalar<std::string>() << std::endl;
  SLUICE_ASSIGN_OR_RETURN(const Tensor value, session->Eval(b));
  PrintMatrix(value);
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  return Exit(Run(argc > 1 ? argv[1] : "/job:local/task:0/cpu:0"));
}
