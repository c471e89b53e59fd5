// OpenSSL's objects with owners. Private to rpc/.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

namespace sluice {

template <auto Free>
struct OpensslDeleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using BioPtr = std::unique_ptr<BIO, OpensslDeleter<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, OpensslDeleter<X509_free>>;

// Reads from `text`, which must outlive it.
BioPtr MemoryBio(std::string_view text);
// The next certificate in there; null if there is none.
X509Ptr ReadCertificate(BIO* pem);
enum class KeyProblem { kNone, kNotPem, kEncrypted };
KeyPtr ReadKey(std::string_view pem, KeyProblem* problem);

}  // namespace sluice
