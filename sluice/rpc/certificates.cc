#include "sluice/rpc/certificates.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/rand.h>

#include "sluice/base/status.h"
#include "sluice/rpc/openssl.h"

namespace sluice {
namespace {

constexpr int64_t kDay = 24 * 60 * 60;
// Machines whose clocks go a little wrong must not take it for not valid yet.
constexpr int64_t kSlack = 60 * 60;

absl::Status OpensslError(std::string_view what) {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  ERR_clear_error();
  return Internal(what, ": ", text);
}

std::string Pem(const auto& write) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  write(bio.get());
  char* data = nullptr;
  const int64_t size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, size);
}

bool IsAddress(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

// A host goes into a list that OpenSSL parses: only what hosts are made of.
absl::Status CheckHost(const std::string& host) {
  const bool plain = !host.empty() && host.size() <= 253 &&
                     host.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                         "XYZ0123456789.-_*:") == std::string::npos;
  if (plain && (IsAddress(host) || host.find(':') == std::string::npos)) {
    return absl::OkStatus();
  }
  return InvalidArgument("'", host,
                         "' is no host name and no address; give it without "
                         "port and brackets");
}

absl::StatusOr<std::string> AlternativeNames(
    const std::vector<std::string>& hosts) {
  std::string list;
  for (const std::string& host : hosts) {
    SLUICE_RETURN_IF_ERROR(CheckHost(host));
    StrAppend(&list, list.empty() ? "" : ",",
              IsAddress(host) ? "IP:" : "DNS:", host);
  }
  return list;
}

bool AddExtension(X509* certificate, X509* issuer, int nid,
                  const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, OpensslDeleter<X509_EXTENSION_free>>
      extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr &&
         X509_add_ext(certificate, extension.get(), -1) == 1;
}

// A certificate for `key` with all but its extensions and its signature.
X509Ptr Draft(const CertificateRequest& request, EVP_PKEY* key) {
  X509Ptr certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof(serial)) != 1) return nullptr;
  serial[0] &= 0x7f;  // A serial number is positive.
  const std::unique_ptr<BIGNUM, OpensslDeleter<BN_free>> number(
      BN_bin2bn(serial, sizeof(serial), nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get()));
  const int64_t end = request.days * kDay;
  // Years above 9999 cannot be written.
  if (X509_gmtime_adj(X509_getm_notBefore(certificate.get()),
                      std::min(int64_t{0}, end) - kSlack) == nullptr ||
      X509_gmtime_adj(X509_getm_notAfter(certificate.get()), end) == nullptr ||
      X509_NAME_add_entry_by_txt(
          X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
          reinterpret_cast<const unsigned char*>(request.name.data()),
          static_cast<int>(request.name.size()), -1, 0) != 1 ||
      X509_set_pubkey(certificate.get(), key) != 1) {
    return nullptr;
  }
  return certificate;
}

absl::StatusOr<CertifiedKey> Sign(X509* certificate, EVP_PKEY* key,
                                  EVP_PKEY* signer) {
  if (X509_sign(certificate, signer, EVP_sha256()) == 0) {
    return OpensslError("Could not sign a certificate");
  }
  CertifiedKey result;
  result.certificate =
      Pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
  result.key = Pem([&](BIO* bio) {
    PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  return result;
}

}  // namespace

absl::StatusOr<CertifiedKey> MakeCa(const CertificateRequest& request) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr draft = key ? Draft(request, key.get()) : nullptr;
  X509* const ca = draft.get();
  if (ca == nullptr ||
      X509_set_issuer_name(ca, X509_get_subject_name(ca)) != 1 ||
      !AddExtension(ca, ca, NID_basic_constraints, "critical,CA:TRUE") ||
      !AddExtension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !AddExtension(ca, ca, NID_subject_key_identifier, "hash")) {
    return OpensslError("Could not make a CA");
  }
  return Sign(ca, key.get(), key.get());
}

absl::StatusOr<CertifiedKey> MakeCertificate(const CertificateRequest& request,
                                             const CertifiedKey& ca) {
  const X509Ptr issuer = ReadCertificate(MemoryBio(ca.certificate).get());
  if (issuer == nullptr) {
    ERR_clear_error();
    return InvalidArgument("The CA's certificate is not in PEM form");
  }
  const ASN1_TIME* const end = X509_get0_notAfter(issuer.get());
  if (X509_cmp_current_time(end) <= 0) {
    return InvalidArgument("The CA's certificate has expired; make a new CA");
  }
  KeyProblem problem = KeyProblem::kNone;
  const KeyPtr signer = ReadKey(ca.key, &problem);
  if (signer == nullptr ||
      X509_check_private_key(issuer.get(), signer.get()) != 1) {
    ERR_clear_error();
    return InvalidArgument(
        problem == KeyProblem::kEncrypted ? "The CA's key is encrypted"
        : signer == nullptr
            ? "The CA's key is not in PEM form"
            : "The CA's key does not belong to its certificate");
  }
  SLUICE_ASSIGN_OR_RETURN(const std::string names,
                          AlternativeNames(request.hosts));
  const KeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr draft = key ? Draft(request, key.get()) : nullptr;
  X509* const made = draft.get();
  const bool outlives =
      made != nullptr && ASN1_TIME_compare(X509_get0_notAfter(made), end) > 0;
  if (made == nullptr || (outlives && X509_set1_notAfter(made, end) != 1) ||
      X509_set_issuer_name(made, X509_get_subject_name(issuer.get())) != 1 ||
      !AddExtension(made, issuer.get(), NID_basic_constraints,
                    "critical,CA:FALSE") ||
      !AddExtension(made, issuer.get(), NID_key_usage,
                    "critical,digitalSignature") ||
      !AddExtension(made, issuer.get(), NID_ext_key_usage,
                    "serverAuth,clientAuth") ||
      !AddExtension(made, issuer.get(), NID_authority_key_identifier,
                    "keyid") ||
      (!names.empty() &&
       !AddExtension(made, issuer.get(), NID_subject_alt_name, names))) {
    return OpensslError("Could not make a certificate");
  }
  return Sign(made, key.get(), signer.get());
}

absl::StatusOr<int> DaysLeft(const std::string& certificate) {
  constexpr int kDaySeconds = static_cast<int>(kDay);
  const X509Ptr read = ReadCertificate(MemoryBio(certificate).get());
  int days = 0, seconds = 0;
  if (read == nullptr || ASN1_TIME_diff(&days, &seconds, nullptr,
                                        X509_get0_notAfter(read.get())) != 1) {
    return OpensslError("Could not read a certificate");
  }
  // Of one that was made for a day some seconds ago, a day is left.
  return days + (seconds + kDaySeconds / 2) / kDaySeconds;
}

}  // namespace sluice
