// A file system that ends at the borders of some folders.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/base/file.h"

namespace sluice {

// The machine's files, but only those in `roots` (folders that exist; none: no
// files at all). Whatever lies elsewhere is PERMISSION_DENIED, wherever `..`
// and symbolic links lead; the error names the path and the roots. Where a link
// leads it says only of links in the roots.
//
// Links are followed before the file is touched, so what is opened is what was
// checked, unless another program of this machine swaps a folder for a link in
// between: the jail holds clients of a server, which cannot make links.
//
// Lives for ever, as RealFileSystem does: kernels may outlive their server.
// The same roots give the same jail.
absl::StatusOr<FileSystem*> FileJail(const std::vector<std::string>& roots);

// The folders SLUICE_ALLOW_FILES lists, with ':' between them; none if it is
// not set. An error if it is set and names none, so that a mistake in a script
// does not open all files.
absl::StatusOr<std::vector<std::string>> AllowedFilesFromEnvironment();

}  // namespace sluice
