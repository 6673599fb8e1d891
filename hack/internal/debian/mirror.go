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

// SnapshotVariable is the environment variable with the address of an archive of all that Debian ever published, as in
// https://snapshot.example.org/archive. Without it, what the mirror has dropped is gone.
const SnapshotVariable = "CAPSTAN_DEBIAN_SNAPSHOT"

// Mirrors maps the archives debian and debian-security to where they are.
type Mirrors map[string]string

// HostMirrors returns the mirrors that MirrorVariable names or, without it, those that this machine installs its own packages
// from. On a machine that is no Debian there are none.
func HostMirrors(ctx context.Context) Mirrors {
	if base := os.Getenv(MirrorVariable); base != "" {
		return archives(strings.TrimSuffix(base, "/"))
	}
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)").Output()
	if err != nil {
		return nil // no Debian
	}
	m := Mirrors{}
	for uri := range strings.FieldsSeq(string(out)) {
		uri = strings.TrimSuffix(uri, "/")
		base, archive := path.Split(uri)
		if !strings.HasPrefix(uri, "http") || archives("")[archive] == "" {
			continue // a disc, a script of apt's own, or another's archive
		}
		// A mirror of one archive most often has the other, too.
		for archive, likely := range archives(strings.TrimSuffix(base, "/")) {
			if m[archive] == "" {
				m[archive] = likely
			}
		}
		m[archive] = uri
	}
	return m
}

func archives(base string) Mirrors {
	return Mirrors{"debian": base + "/debian", "debian-security": base + "/debian-security"}
}
