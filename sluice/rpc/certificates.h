// Makes certificates for mutual TLS: a CA of one's own, and what it signs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sluice {

// A certificate and its private key, both PEM.
struct CertifiedKey {
  std::string certificate;
  std::string key;
};

struct CertificateRequest {
  std::string name;  // Who it is for, in words; nothing checks it.
  // The host names ("*.example.org" too) and addresses its owner serves at.
  std::vector<std::string> hosts = {};
  // How long it is valid, from now; below 0: it was. No longer than its CA.
  int days = 365;
};

absl::StatusOr<CertifiedKey> MakeCa(const CertificateRequest& request);
// For servers and clients alike. `ca` as MakeCa or another program made it.
absl::StatusOr<CertifiedKey> MakeCertificate(const CertificateRequest& request,
                                             const CertifiedKey& ca);

// For how many days from now a certificate is valid.
absl::StatusOr<int> DaysLeft(const std::string& certificate);

}  // namespace sluice
