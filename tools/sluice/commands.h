// The commands behind `sluice`. Each returns the exit status of the process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice::tools {

// Certificates made for one run of a local cluster.
inline constexpr char kNewTls[] = "new";

struct RunOptions {
  int ps = 0;
  int workers = 0;
  int chiefs = 0;
  int evaluators = 0;
  bool soft_placement = false;
  // A folder of certificates, kNewTls, or empty for plain text.
  std::string tls;
  std::string python;                // Empty: the one the build was made with.
  std::string wire = "both";         // flags, env, both or none.
  std::vector<std::string> command;  // Program and its arguments.
};
// Runs a program: alone, or as one process per task of a local cluster.
int Run(const RunOptions& options);

struct ServeOptions {
  std::string cluster;  // Text, a JSON file, or empty for TF_CONFIG.
  // What is not given is TF_CONFIG's where that names the cluster.
  std::string job = {};
  std::optional<int> task = {};
  std::string tls;                  // A folder of certificates.
  std::vector<std::string> limits;  // "name=value".
  std::vector<std::string> allowed_files;
  std::string bind;
};
// Serves one task until it is told to stop.
int Serve(const ServeOptions& options);

// Lists the devices of a target's cluster; empty: of this machine. 1 if a task
// is missing. `tls` is a folder of certificates or empty.
int ListDevices(const std::string& target, const std::string& tls);

struct CertsOptions {
  std::string directory;
  // Beside this machine's own names; those it has if empty.
  std::vector<std::string> hosts = {};
  std::string ca = {};  // The folder of the CA to use; empty: makes one.
  int days = 365;
};
int Certs(const CertsOptions& options);
// The same without a word. Returns for how many days the certificate is valid:
// fewer than was asked for if the CA is.
absl::StatusOr<int> MakeCertificates(const CertsOptions& options);

// Prints what the task at a target does.
int PrintStatus(const std::string& target, const std::string& tls, bool json);

// Examines a cluster (text, a JSON file, or empty for TF_CONFIG); 1 if
// something is wrong with it, 2 if that cannot be found out.
int Diagnose(const std::string& cluster, const std::string& tls);

}  // namespace sluice::tools
