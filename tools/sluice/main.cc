#include <CLI/CLI.hpp>

#include "tools/sluice/commands.h"

int main(int argc, char** argv) {
  using namespace sluice::tools;
  CLI::App app{"Sluice: distributed dataflow for machine learning"};
  app.require_subcommand(1);

  RunOptions run;
  CLI::App* run_command = app.add_subcommand(
      "run",
      "Run a TensorFlow 1 script (or any program), alone or as a local "
      "cluster");
  run_command->add_option("--ps", run.ps, "Number of parameter servers");
  run_command->add_option("--workers", run.workers, "Number of workers");
  run_command->add_option("--chief", run.chiefs, "Number of chiefs (0 or 1)");
  run_command->add_option("--evaluator", run.evaluators,
                          "Number of evaluators");
  run_command->add_flag("--soft-placement", run.soft_placement,
                        "Use the CPU where a program asks for a device that is "
                        "not there");
  run_command->add_option("--python", run.python, "The Python to use");
  run_command
      ->add_option("--wire", run.wire,
                   "How tasks learn of each other: by flags that the script "
                   "declares, by TF_CONFIG, both, or none")
      ->check(CLI::IsMember({"flags", "env", "both", "none"}));
  run_command->add_option("program", run.command, "script.py args…")
      ->required();
  // Everything behind the script is the script's.
  run_command->prefix_command();
  run_command->positionals_at_end();

  ServerOptions server;
  CLI::App* server_command =
      app.add_subcommand("server", "Serve one task of a cluster");
  server_command->add_option(
      "--cluster", server.cluster,
      "'ps=h:p,h:p;worker=h:p', a JSON file, or nothing for TF_CONFIG");
  server_command->add_option("--job", server.job, "The job of this task");
  server_command->add_option("--task", server.task, "Its index in the job");

  std::string target;
  CLI::App* devices_command =
      app.add_subcommand("devices", "List the devices of a target");
  devices_command->add_option("target", target, "grpc://host:port");

  CLI11_PARSE(app, argc, argv);
  if (*run_command) {
    for (const std::string& rest : run_command->remaining()) {
      run.command.push_back(rest);
    }
    return Run(run);
  }
  if (*server_command) return Serve(server);
  return ListDevices(target);
}
