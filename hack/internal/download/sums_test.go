// SPDX-License-Identifier: Apache-2.0

package download

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindSum(t *testing.T) {
	one, two := sumOf([]byte("one")), sumOf([]byte("two"))
	for name, tc := range map[string]struct {
		reason, list, want string
	}{
		"Alone":       {"Kubernetes and Crossplane publish just the sum.", one, one},
		"AloneLine":   {"With or without the end of a line.", strings.ToUpper(one) + "\n", one},
		"List":        {"sha256sum writes a list.", two + "  other.tar.gz\n" + one + "  tool.tar.gz\n", one},
		"Binary":      {"For binary files it writes an asterisk.", one + " *tool.tar.gz\n", one},
		"Path":        {"Some lists have paths.", one + "  ./dist/tool.tar.gz\n", one},
		"Signed":      {"runc's list is framed by a signature.", "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n" + one + "  tool.tar.gz\n-----BEGIN PGP SIGNATURE-----\n\niQ==\n", one},
		"Longer":      {"A name that only ends alike is another file.", one + "  my-tool.tar.gz\n", ""},
		"Signature":   {"So is the signature of a file.", one + "  tool.tar.gz.asc\n", ""},
		"Twice":       {"Two answers are none.", one + "  tool.tar.gz\n" + two + "  a/tool.tar.gz\n", ""},
		"SHA512":      {"Half of a longer sum is no SHA-256 sum.", one + two + "  tool.tar.gz\n", ""},
		"Page":        {"A page is no list.", "<html>not found</html>", ""},
		"Empty":       {"Nothing is no sum.", "", ""},
		"OtherFormat": {"BSD's format is not in use by any publisher here.", "SHA256 (tool.tar.gz) = " + one, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findSum(tc.list, "tool.tar.gz")
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%s\nwant %q, got %q, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

func TestPublished(t *testing.T) {
	one, two := sumOf([]byte("one")), sumOf([]byte("two"))
	list := one + "  one.amd64\n" + two + "  two.amd64\n" + two + "  one.arm64\n" + one + "  two.arm64\n"
	server := httptest.NewTLSServer(handler(map[string]http.HandlerFunc{
		"/example.org/v1/sums.txt": content([]byte(list)), "/example.org/v2/sums.txt": content(bytes.Repeat([]byte("#\n"), maxSums)),
		"/example.org/v3/sums.txt": content([]byte(one + "  one.amd64\n")),
	}))
	defer server.Close()
	d := newDownloader(t, server, ModeAuto, nil)
	source := server.URL + "/example.org/v1/sums.txt"
	got, err := d.Published(t.Context(), "plain", "v1")
	want := Pins{
		{Tool: "plain", Version: "v1", Arch: "amd64", URL: "https://example.org/v1/one.amd64", SHA256: one, Source: source},
		{Tool: "plain", Version: "v1", Arch: "amd64", URL: "https://example.org/v1/two.amd64", SHA256: two, Source: source},
		{Tool: "plain", Version: "v1", Arch: "arm64", URL: "https://example.org/v1/one.arm64", SHA256: two, Source: source},
		{Tool: "plain", Version: "v1", Arch: "arm64", URL: "https://example.org/v1/two.arm64", SHA256: one, Source: source},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("every file of both architectures: %v: -want, +got:\n%s", err, diff)
	}
	for version, tc := range map[string]struct {
		reason string
		want   error
	}{
		"v2": {"A list without end is not read to its end.", ErrContent},
		"v3": {"A list that lacks a file pins nothing of it.", ErrNotServed},
		"v4": {"A missing list pins nothing.", ErrNotServed},
	} {
		if pins, err := d.Published(t.Context(), "plain", version); !errors.Is(err, tc.want) || pins != nil {
			t.Errorf("%s\nwant %v, got %v, %v", tc.reason, tc.want, pins, err)
		}
	}
	if _, err := d.Published(t.Context(), "compiled", "v1"); !errors.Is(err, ErrNotPublished) {
		t.Errorf("what is not published is pinned: %v", err)
	}
	plain := serve(t, map[string]http.HandlerFunc{"/example.org/v1/sums.txt": content([]byte(list))})
	if _, err := newDownloader(t, plain, ModeAuto, nil).Published(t.Context(), "plain", "v1"); !errors.Is(err, ErrNotPinned) {
		t.Errorf("a list without TLS is believed: %v", err)
	}
}
