#include "sluice/rpc/openssl.h"

namespace sluice {

BioPtr MemoryBio(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

X509Ptr ReadCertificate(BIO* pem) {
  return X509Ptr(PEM_read_bio_X509(pem, nullptr, nullptr, nullptr));
}

KeyPtr ReadKey(std::string_view pem, KeyProblem* problem) {
  // Without it OpenSSL would ask for a passphrase on the terminal.
  bool asked = false;
  const auto no_passphrase = [](char*, int, int, void* was_asked) {
    *static_cast<bool*>(was_asked) = true;
    return -1;
  };
  const BioPtr bio = MemoryBio(pem);
  KeyPtr key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, &asked));
  *problem = key != nullptr ? KeyProblem::kNone
             : asked        ? KeyProblem::kEncrypted
                            : KeyProblem::kNotPem;
  return key;
}

}  // namespace sluice
