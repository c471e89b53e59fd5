#include "sluice/rpc/tls.h"

#include <openssl/err.h>

#include <cstdlib>
#include <vector>

#include "sluice/base/file.h"
#include "sluice/base/path.h"
#include "sluice/base/status.h"
#include "sluice/rpc/openssl.h"

namespace sluice {
namespace {

using ChainPtr =
    std::unique_ptr<STACK_OF(X509), decltype([](STACK_OF(X509) * chain) {
                      sk_X509_pop_free(chain, X509_free);
                    })>;

absl::StatusOr<std::string> Contents(const char* what, const std::string& path,
                                     const char* variable) {
  if (path.empty()) {
    return InvalidArgument("TLS needs a certificate, its key and a CA: the ",
                           what, " is missing (", variable, ")");
  }
  absl::StatusOr<std::string> text = RealFileSystem().ReadFile(path);
  if (text.ok()) return text;
  return WithMessage(text.status(),
                     StrCat("TLS ", what, " ", text.status().message()));
}

std::string TimeText(const ASN1_TIME* time) {
  const BioPtr text(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(text.get(), time);
  char* data = nullptr;
  const int64_t size = BIO_get_mem_data(text.get(), &data);
  return std::string(data, size);
}

// One of the files, for messages.
struct File {
  const char* what;
  const std::string& path;

  template <typename... Args>
  absl::Status Error(const Args&... args) const {
    ERR_clear_error();
    return InvalidArgument("TLS ", what, " ", path, ": ", args...);
  }
};

absl::Status CheckDates(const File& file, const X509* certificate) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0) {
    return file.Error("expired on ", TimeText(X509_get0_notAfter(certificate)));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    return file.Error("not valid before ",
                      TimeText(X509_get0_notBefore(certificate)),
                      "; is the clock of this machine right?");
  }
  return absl::OkStatus();
}

// All certificates in `pem`; at least one.
absl::StatusOr<std::vector<X509Ptr>> Certificates(const File& file,
                                                  const std::string& pem) {
  std::vector<X509Ptr> all;
  const BioPtr bio = MemoryBio(pem);
  while (X509Ptr next = ReadCertificate(bio.get())) {
    SLUICE_RETURN_IF_ERROR(CheckDates(file, next.get()));
    all.push_back(std::move(next));
  }
  // The end of the text is an error of its own kind.
  const unsigned long last = ERR_peek_last_error();
  const bool at_end = ERR_GET_LIB(last) == ERR_LIB_PEM &&
                      ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  if (all.empty() || !at_end) {
    return file.Error(
        "not a certificate in PEM form (\"-----BEGIN "
        "CERTIFICATE-----\")");
  }
  ERR_clear_error();
  return all;
}

absl::Status CheckKey(const File& file, const std::string& pem,
                      const std::string& certificate_path, X509* certificate) {
  KeyProblem problem = KeyProblem::kNone;
  const KeyPtr key = ReadKey(pem, &problem);
  if (problem == KeyProblem::kEncrypted) {
    return file.Error(
        "encrypted with a passphrase; a server cannot ask for it");
  }
  if (key == nullptr) {
    return file.Error(
        "not a private key in PEM form (\"-----BEGIN PRIVATE "
        "KEY-----\")");
  }
  if (X509_check_private_key(certificate, key.get()) != 1) {
    return file.Error("does not belong to the certificate ", certificate_path);
  }
  return absl::OkStatus();
}

// Whether peers that know the same CA would take this certificate.
absl::Status CheckSignature(const File& file,
                            const std::vector<X509Ptr>& certificates,
                            const std::vector<X509Ptr>& ca,
                            const std::string& ca_path, int purpose) {
  const std::unique_ptr<X509_STORE, OpensslDeleter<X509_STORE_free>> store(
      X509_STORE_new());
  for (const X509Ptr& one : ca) X509_STORE_add_cert(store.get(), one.get());
  const ChainPtr chain(sk_X509_new_null());
  for (size_t i = 1; i < certificates.size(); ++i) {
    X509_up_ref(certificates[i].get());
    sk_X509_push(chain.get(), certificates[i].get());
  }
  const std::unique_ptr<X509_STORE_CTX, OpensslDeleter<X509_STORE_CTX_free>>
      context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), certificates[0].get(),
                      chain.get());
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  const int error = X509_STORE_CTX_get_error(context.get());
  if (error == X509_V_ERR_INVALID_PURPOSE) {
    return file.Error(
        "its extended key usage does not let it be that of a ",
        purpose == X509_PURPOSE_SSL_SERVER ? "server" : "client",
        "; a server needs a certificate for both, as it calls its peers");
  }
  return file.Error("not signed by the CA ", ca_path, ": ",
                    X509_verify_cert_error_string(error));
}

}  // namespace

TlsOptions TlsOptions::InDirectory(const std::string& directory) {
  return {JoinPath(directory, "tls.crt"), JoinPath(directory, "tls.key"),
          JoinPath(directory, "ca.crt")};
}

TlsOptions TlsOptions::FromEnvironment() {
  TlsOptions options;
  const auto read = [&](const char* name, std::string* path) {
    const char* value = std::getenv(name);
    if (value == nullptr) return;
    *path = value;
    options.given = true;
  };
  read("SLUICE_TLS_CERT", &options.certificate);
  read("SLUICE_TLS_KEY", &options.key);
  read("SLUICE_TLS_CA", &options.ca);
  return options;
}

absl::StatusOr<TlsIdentityPtr> LoadTls(const TlsOptions& options,
                                       TlsRole role) {
  if (options.empty()) return TlsIdentityPtr();
  auto tls = std::make_shared<TlsIdentity>();
  SLUICE_ASSIGN_OR_RETURN(
      tls->certificate,
      Contents("certificate", options.certificate, "SLUICE_TLS_CERT"));
  SLUICE_ASSIGN_OR_RETURN(tls->key,
                          Contents("key", options.key, "SLUICE_TLS_KEY"));
  SLUICE_ASSIGN_OR_RETURN(tls->ca, Contents("CA", options.ca, "SLUICE_TLS_CA"));
  const File file{"certificate", options.certificate};
  SLUICE_ASSIGN_OR_RETURN(const std::vector<X509Ptr> certificates,
                          Certificates(file, tls->certificate));
  SLUICE_RETURN_IF_ERROR(CheckKey({"key", options.key}, tls->key,
                                  options.certificate, certificates[0].get()));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<X509Ptr> ca,
                          Certificates({"CA", options.ca}, tls->ca));
  SLUICE_RETURN_IF_ERROR(CheckSignature(file, certificates, ca, options.ca,
                                        X509_PURPOSE_SSL_CLIENT));
  if (role == TlsRole::kTask) {
    SLUICE_RETURN_IF_ERROR(CheckSignature(file, certificates, ca, options.ca,
                                          X509_PURPOSE_SSL_SERVER));
  }
  return TlsIdentityPtr(std::move(tls));
}

}  // namespace sluice
