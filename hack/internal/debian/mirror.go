// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"os"
	"os/exec"
	"path"
	"strings"
)

// MirrorVariable is the environment variable that overrides the machine's own mirror, as in https://mirror.example.org, which has
// the archives debian and debian-security below it.
const MirrorVariable = "CAPSTAN_DEBIAN_MIRROR"

const (
	publicMirror   = "https://deb.debian.org"
	publicSnapshot = "https://snapshot.debian.org/archive"
)

// Mirrors maps the archives debian and debian-security to where they are.
type Mirrors map[string]string

// HostMirrors returns the mirrors that this machine installs its own packages from, and Debian's public one for what it has
// no mirror for.
func HostMirrors(ctx context.Context) Mirrors {
	base := publicMirror
	if named := os.Getenv(MirrorVariable); named != "" {
		base = strings.TrimSuffix(named, "/")
	}
	m := Mirrors{"debian": base + "/debian", "debian-security": base + "/debian-security"}
	if base != publicMirror {
		return m
	}
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)").Output()
	if err != nil {
		return m // no Debian
	}
	for uri := range strings.FieldsSeq(string(out)) {
		uri = strings.TrimSuffix(uri, "/")
		if !strings.HasPrefix(uri, "http") {
			continue // a disc or a script of apt's own
		}
		if _, ok := m[path.Base(uri)]; ok {
			m[path.Base(uri)] = uri
		}
	}
	return m
}
