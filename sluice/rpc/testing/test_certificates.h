// TestCertificates: a CA and what it signs, in files that go away with the
// object.
#pragma once

#include <gtest/gtest.h>

#include "sluice/base/testing/temp_dir.h"
#include "sluice/rpc/certificates.h"
#include "sluice/rpc/tls.h"

namespace sluice {

class TestCertificates {
 public:
  TestCertificates() : ca_(*MakeCa({.name = "Test CA"})) {
    Write("ca.crt", ca_.certificate);
  }

  // Files with a certificate of this CA.
  TlsOptions Options(const std::string& name = "tls",
                     std::vector<std::string> hosts = {"localhost", "127.0.0.1",
                                                       "::1"},
                     int days = 365) const {
    const CertifiedKey made = *MakeCertificate(
        {.name = name, .hosts = std::move(hosts), .days = days}, ca_);
    Write(name + ".crt", made.certificate);
    Write(name + ".key", made.key);
    return {dir_ / (name + ".crt"), dir_ / (name + ".key"), dir_ / "ca.crt"};
  }
  // The same as what a program holds of them.
  TlsIdentityPtr Identity(const std::string& name = "tls") const {
    return *LoadTls(Options(name), TlsRole::kTask);
  }
  // A file beside them.
  std::string Write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(RealFileSystem().WriteFile(dir_ / name, text).ok());
    return dir_ / name;
  }
  const CertifiedKey& ca() const { return ca_; }
  std::string ca_file() const { return dir_ / "ca.crt"; }

 private:
  const TempDir dir_;
  const CertifiedKey ca_;
};

}  // namespace sluice
