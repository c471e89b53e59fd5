#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "sluice/base/limits.h"
#include "sluice/server/status.h"
#include "tools/sluice/cluster.h"
#include "tools/sluice/commands.h"

namespace {

// How many of the words after `sluice run` are ours: the options and the
// program. What follows is the program's.
size_t OwnWords(const CLI::App& run, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("-") || word == "-") return i + 1;
    const CLI::Option* option = run.get_option_no_throw(word);
    // Its value is the next word. An unknown one is reported by the parser.
    if (option != nullptr && option->get_items_expected_min() > 0) ++i;
  }
  return words.size();
}

// Says that there is no such command; true if there is.
bool CheckCommand(const CLI::App& app, const std::string& name) {
  std::string all;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return true;
    all += " " + command->get_name();
  }
  std::fprintf(stderr, "sluice: there is no command '%s'; there are:%s\n",
               name.c_str(), all.c_str());
  return false;
}

// "--tls=" must not take the next word for its value, as the parser would.
// Names the first such option, or nothing.
std::string OptionWithoutValue(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      return word.substr(0, word.size() - 1);
    }
  }
  return "";
}

// A word that is given and empty comes from a mistake in a script. It must not
// mean that there is none, nor that protection is off.
void RefuseEmptyWords(CLI::App* command) {
  const CLI::Validator given(
      [](const std::string& value) {
        return value.empty() ? "needs a value, not an empty word" : "";
      },
      "");
  for (CLI::Option* option : command->get_options()) option->check(given);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sluice::tools;
  CLI::App app{"Sluice: distributed dataflow for machine learning"};
  app.require_subcommand(1);
  app.set_version_flag("--version", sluice::SluiceVersion());

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
  // Only by '=', as the script follows.
  run_command->add_flag(std::string("--tls{") + kNewTls + "}", run.tls,
                        "Mutual TLS between all tasks: --tls=DIR with the "
                        "certificates there, --tls alone with new ones for "
                        "this run");
  run_command->add_option("--python", run.python, "The Python to use");
  run_command
      ->add_option("--wire", run.wire,
                   "How tasks learn of each other: by flags that the script "
                   "declares, by TF_CONFIG, both, or none")
      ->check(CLI::IsMember({"flags", "env", "both", "none"}));
  run_command->add_option("program", run.command, "script.py args…")
      ->required();

  ServeOptions server;
  CLI::App* server_command =
      app.add_subcommand("server", "Serve one task of a cluster");
  server_command->add_option(
      "--cluster", server.cluster,
      "'ps=h:p,h:p;worker=h:p', a JSON file, or nothing for TF_CONFIG");
  server_command->add_option(
      "--job", server.job,
      "The job of this task; TF_CONFIG's if that names the cluster");
  server_command->add_option(
      "--task", server.task,
      "Its index in the job; TF_CONFIG's if that names the cluster, else 0");

  constexpr char kTlsHelp[] =
      "Mutual TLS with DIR/tls.crt, DIR/tls.key and DIR/ca.crt (`sluice certs` "
      "makes them)";
  server_command->add_option("--tls", server.tls, kTlsHelp)->type_name("DIR");
  server_command
      ->add_option("--limit", server.limits,
                   "NAME=VALUE, several times: what clients may use.\n" +
                       sluice::Limits().Describe())
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  server_command
      ->add_option("--allow-files", server.allowed_files,
                   "Let ops touch files in this folder only (several times: "
                   "in these folders)")
      ->type_name("DIR")
      ->allow_extra_args(false);
  server_command
      ->add_option("--bind", server.bind,
                   "Listen at this host or address only; own: at the task's "
                   "own host in the cluster")
      ->type_name("HOST");

  std::string target, tls;
  CLI::App* devices_command =
      app.add_subcommand("devices", "List the devices of a target");
  devices_command->add_option(
      "target", target, "[grpc://]host:port; nothing for this machine's own");
  devices_command->add_option("--tls", tls, kTlsHelp)->type_name("DIR");

  CLI::App* status_command = app.add_subcommand(
      "status",
      "Print what a task does: sessions, running steps, waits, counters");
  status_command->add_option("target", target, "[grpc://]host:port")
      ->required();
  status_command->add_option("--tls", tls, kTlsHelp)->type_name("DIR");
  bool json = false;
  status_command->add_flag("--json", json, "For programs");

  std::string cluster;
  CLI::App* doctor_command = app.add_subcommand(
      "doctor",
      "Ask every task of a cluster who it is, and say what is wrong; fails if "
      "something is");
  doctor_command->add_option(
      "cluster", cluster,
      "'ps=h:p,h:p;worker=h:p', a JSON file, or nothing for TF_CONFIG");
  doctor_command->add_option("--tls", tls, kTlsHelp)->type_name("DIR");

  CertsOptions certs;
  CLI::App* certs_command =
      app.add_subcommand("certs", "Make a CA and a certificate for mutual TLS");
  certs_command->add_option("directory", certs.directory, "Where to put them")
      ->required();
  certs_command
      ->add_option("--host", certs.hosts,
                   "A host name or address that tasks have in the cluster "
                   "spec, several times; localhost always is one")
      ->type_name("NAME")
      ->allow_extra_args(false);
  certs_command
      ->add_option("--ca", certs.ca,
                   "Sign with DIR/ca.crt and DIR/ca.key instead of a new CA")
      ->type_name("DIR");
  certs_command->add_option("--days", certs.days, "How long they are valid")
      ->capture_default_str();

  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && !words[0].starts_with("-") &&
      !CheckCommand(app, words[0])) {
    return kWrongUsage;
  }
  std::vector<std::string> rest;
  if (!words.empty() && words[0] == run_command->get_name()) {
    const auto end = words.begin() + 1 +
                     OwnWords(*run_command, {words.begin() + 1, words.end()});
    rest.assign(end, words.end());
    words.erase(end, words.end());
  }
  if (const std::string option = OptionWithoutValue(words); !option.empty()) {
    std::fprintf(stderr, "sluice: %s= has no value\n", option.c_str());
    return kWrongUsage;
  }
  for (CLI::App* command : app.get_subcommands({})) RefuseEmptyWords(command);
  try {
    std::reverse(words.begin(), words.end());  // As the parser wants them.
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  if (*run_command) {
    run.command.insert(run.command.end(), rest.begin(), rest.end());
    return Run(run);
  }
  if (*server_command) return Serve(server);
  if (*status_command) return PrintStatus(target, tls, json);
  if (*doctor_command) return Diagnose(cluster, tls);
  if (*certs_command) return Certs(certs);
  return ListDevices(target, tls);
}
