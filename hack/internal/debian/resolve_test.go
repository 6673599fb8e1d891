// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseURIs(t *testing.T) {
	out := "Reading package lists...\n" +
		"'http://mirror.example.org/debian/pool/main/b/busybox/busybox_1.38.0-3%2bb1_amd64.deb' busybox_1%3a1.38.0-3+b1_amd64.deb 494836 SHA256:" + someSum + "\n"
	table := "busybox | 1:1.35.0-4 | http://mirror.example.org/debian bookworm/main amd64 Packages\n" +
		"busybox | 1:1.38.0-3+b1 | http://mirror.example.org/debian sid/main amd64 Packages\n" +
		"busybox | 1:1.38.0-3 | http://mirror.example.org/debian sid/main Sources\n"
	packages, err := parseURIs(out, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	got, err := withSuites(packages, table)
	if err != nil {
		t.Fatal(err)
	}
	want := []Package{{"amd64", "sid", "busybox", "1:1.38.0-3+b1", someSum, "pool/main/b/busybox/busybox_1.38.0-3+b1_amd64.deb"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the epoch is escaped in the file's name and the plus in the address: -want, +got:\n%s", diff)
	}
	if _, err := withSuites(packages, "busybox | 1:1.35.0-4 | http://mirror.example.org/debian bookworm/main amd64 Packages\n"); err == nil {
		t.Error("a package whose suite is unknown could not be found again")
	}
	for reason, out := range map[string]string{
		"apt found nothing to install":  "Reading package lists...\n",
		"a sum that cannot be verified": "'http://mirror.example.org/debian/pool/a.deb' a_1_amd64.deb 1 MD5Sum:" + someSum[:32] + "\n",
		"no place in an archive":        "'http://mirror.example.org/a.deb' a_1_amd64.deb 1 SHA256:" + someSum + "\n",
	} {
		if got, err := parseURIs(out, "amd64"); err == nil {
			t.Errorf("%s: got %v", reason, got)
		}
	}
}
