// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const someSum = "74b9726f2f2eb9be66d886d48bd6841e57f53d1acae1a1acdc29877aa3e29dc6"

func TestLockRoundTrip(t *testing.T) {
	want := Lock{
		Snapshots: map[string]time.Time{
			"sid":             time.Date(2026, 10, 30, 20, 8, 1, 0, time.UTC),
			"trixie-security": time.Date(2026, 11, 20, 12, 12, 42, 0, time.UTC),
		},
		Packages: []Package{
			{"amd64", "sid", "busybox", "1:1.38.0-3+b1", someSum, "pool/main/b/busybox/busybox_1.38.0-3+b1_amd64.deb"},
			{"amd64", "trixie-security", "postgresql-17", "17.12-0+deb13u1", someSum, "pool/updates/main/p/postgresql-17/postgresql-17_17.12-0+deb13u1_amd64.deb"},
			{"arm64", "sid", "busybox", "1:1.38.0-3+b1", someSum, "pool/main/b/busybox/busybox_1.38.0-3+b1_arm64.deb"},
		},
	}
	unsorted := Lock{Snapshots: want.Snapshots, Packages: []Package{want.Packages[2], want.Packages[1], want.Packages[0]}}
	got, err := ParseLock(unsorted.Format("What it is.\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if n := len(got.For("arm64")); n != 1 {
		t.Errorf("For(arm64): want one package, got %d", n)
	}
	if got := want.Packages[1].Archive(); got != "debian-security" {
		t.Errorf("security updates are in an archive of their own, not in %q", got)
	}
}

func TestParseLockRefuses(t *testing.T) {
	const header = "snapshot sid 20261030T200801Z\n"
	cases := map[string]struct {
		reason string
		lock   string
	}{
		"Empty":      {"A lock of nothing builds an image of nothing.", header},
		"NoSnapshot": {"Nothing could find the package once mirrors have dropped it.", "amd64 sid a 1 " + someSum + " pool/a.deb"},
		"Columns":    {"A line that was cut short is no package.", header + "amd64 sid a 1 " + someSum},
		"Sum":        {"The sum becomes a file name.", header + "amd64 sid a 1 ../../etc/passwd pool/a.deb"},
		"Path":       {"A path must not lead out of the archive.", header + "amd64 sid a 1 " + someSum + " pool/../../a.deb"},
		"Moment":     {"The snapshot service understands one layout.", "snapshot sid yesterday\namd64 sid a 1 " + someSum + " pool/a.deb"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := ParseLock([]byte(tc.lock)); err == nil {
				t.Errorf("%s It was read as %v", tc.reason, got)
			}
		})
	}
}

func TestDrift(t *testing.T) {
	before := Lock{Packages: []Package{{Architecture: "amd64", Name: "libc6", Version: "2.43-7"}, {Architecture: "amd64", Name: "libicu78", Version: "78.3-2"}}}
	after := Lock{Packages: []Package{{Architecture: "amd64", Name: "libc6", Version: "2.43-8"}, {Architecture: "amd64", Name: "libicu79", Version: "79.1-1"}}}
	want := "amd64 libc6 2.43-7 -> 2.43-8, amd64 libicu78 78.3-2 -> gone, amd64 libicu79 new -> 79.1-1"
	if diff := cmp.Diff(want, strings.Join(Drift(before, after), ", ")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if lines := Drift(before, before); len(lines) > 0 {
		t.Errorf("nothing has changed, but: %v", lines)
	}
}
