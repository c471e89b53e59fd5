// Mutual TLS: both ends of a connection show a certificate of one CA, and a
// server's certificate must be for the host that its address names.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace sluice {

// Files in PEM form. None given: plain text.
struct TlsOptions {
  // The own certificate, followed by those between it and the CA, if any.
  std::string certificate;
  std::string key;
  // The certificates that the peer's may be signed with.
  std::string ca;
  // Somebody named them, if only by empty words: those are an error then. A
  // mistake in a script must not switch protection off.
  bool given = false;

  // tls.crt, tls.key and ca.crt in `directory`: what `sluice certs` makes.
  static TlsOptions InDirectory(const std::string& directory);
  // SLUICE_TLS_CERT, SLUICE_TLS_KEY and SLUICE_TLS_CA.
  static TlsOptions FromEnvironment();
  bool empty() const {
    return !given && certificate.empty() && key.empty() && ca.empty();
  }
};

// What the files hold, checked.
struct TlsIdentity {
  std::string certificate;
  std::string key;
  std::string ca;
};
// Null means plain text wherever one is asked for.
using TlsIdentityPtr = std::shared_ptr<const TlsIdentity>;

enum class TlsRole {
  kClient,  // A session.
  kTask,    // A server, which is a client of its peers too.
};
// Null if `options` are empty. Blocks. An error names the file and what is
// wrong with it: missing, no PEM, expired, of another CA, …
absl::StatusOr<TlsIdentityPtr> LoadTls(const TlsOptions& options, TlsRole role);

}  // namespace sluice
