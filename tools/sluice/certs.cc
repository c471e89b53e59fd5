// `sluice certs`: certificates for mutual TLS, by a CA of one's own.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sluice/base/errno_status.h"
#include "sluice/base/file.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/rpc/certificates.h"
#include "tools/sluice/cluster.h"
#include "tools/sluice/commands.h"

namespace sluice::tools {
namespace {

constexpr mode_t kPublic = 0644;
constexpr mode_t kSecret = 0600;
// A century; the format of certificates ends with the year 9999.
constexpr int kMostDays = 36500;

// Never in the place of another file.
absl::Status WriteNew(const std::string& path, mode_t mode,
                      const std::string& text) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return ErrnoStatus(errno, path);
  const bool written =
      fchmod(fd, mode) == 0 &&  // Whatever the umask says.
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (close(fd) == 0 && written) return absl::OkStatus();
  unlink(path.c_str());
  return ErrnoStatus(error, path);
}

absl::Status CheckFree(const CertsOptions& options) {
  std::vector<std::string> names = {"tls.crt", "tls.key", "ca.crt"};
  if (options.ca.empty()) names.push_back("ca.key");
  for (const std::string& name : names) {
    const std::string path = JoinPath(options.directory, name);
    if (RealFileSystem().Exists(path)) {
      return AlreadyExists(path,
                           " exists; certificates that are in use are not "
                           "overwritten: take it away, or give another folder");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CertifiedKey> ReadCa(const std::string& directory) {
  CertifiedKey ca;
  SLUICE_ASSIGN_OR_RETURN(
      ca.certificate, RealFileSystem().ReadFile(JoinPath(directory, "ca.crt")));
  SLUICE_ASSIGN_OR_RETURN(
      ca.key, RealFileSystem().ReadFile(JoinPath(directory, "ca.key")));
  return ca;
}

// What every machine is known by to itself, and what was asked for.
std::vector<std::string> Hosts(const std::vector<std::string>& asked) {
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "::1"};
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' &&
      asked.empty()) {
    hosts.emplace_back(name);
  }
  hosts.insert(hosts.end(), asked.begin(), asked.end());
  return hosts;
}

}  // namespace

absl::StatusOr<int> MakeCertificates(const CertsOptions& options) {
  if (options.days <= 0 || options.days > kMostDays) {
    return InvalidArgument("--days must be from 1 to ", kMostDays, ", not ",
                           options.days);
  }
  SLUICE_RETURN_IF_ERROR(CheckFree(options));
  CertifiedKey ca;
  if (options.ca.empty()) {
    SLUICE_ASSIGN_OR_RETURN(
        ca, MakeCa({.name = "Sluice cluster CA", .days = options.days}));
  } else {
    SLUICE_ASSIGN_OR_RETURN(ca, ReadCa(options.ca));
  }
  SLUICE_ASSIGN_OR_RETURN(const CertifiedKey own,
                          MakeCertificate({.name = "Sluice task or client",
                                           .hosts = Hosts(options.hosts),
                                           .days = options.days},
                                          ca));
  SLUICE_RETURN_IF_ERROR(RealFileSystem().MkDirs(options.directory));
  const auto write = [&](const char* name, mode_t mode,
                         const std::string& text) {
    return WriteNew(JoinPath(options.directory, name), mode, text);
  };
  if (options.ca.empty()) {
    SLUICE_RETURN_IF_ERROR(write("ca.key", kSecret, ca.key));
  }
  SLUICE_RETURN_IF_ERROR(write("ca.crt", kPublic, ca.certificate));
  SLUICE_RETURN_IF_ERROR(write("tls.key", kSecret, own.key));
  SLUICE_RETURN_IF_ERROR(write("tls.crt", kPublic, own.certificate));
  return DaysLeft(own.certificate);
}

int Certs(const CertsOptions& options) {
  const absl::StatusOr<int> days = MakeCertificates(options);
  if (!days.ok()) return Complain(days.status());
  const char* const dir = options.directory.c_str();
  if (options.ca.empty()) {
    std::printf("%s/ca.key    signs certificates; keep it off the cluster\n",
                dir);
  }
  std::printf(
      "%s/ca.crt    whose certificates are trusted\n"
      "%s/tls.crt   the certificate of a task or client, valid %d days%s\n"
      "%s/tls.key   its key\n"
      "Give ca.crt, tls.crt and tls.key to every task and client:\n"
      "  sluice server --tls %s ...\n"
      "  sluice run --tls=%s --ps 1 --workers 2 script.py\n",
      dir, dir, *days, *days < options.days ? ", as long as its CA" : "", dir,
      dir, dir);
  return 0;
}

}  // namespace sluice::tools
