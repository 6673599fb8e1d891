// SPDX-License-Identifier: Apache-2.0

package debian_test

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/hack/internal/debian"
	"github.com/capstan-dev/capstan/hack/internal/debian/debiantest"
)

func TestWalk(t *testing.T) {
	files := []debiantest.File{
		{Header: tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}},
		{Header: tar.Header{Name: "./usr/", Typeflag: tar.TypeDir, Mode: 0o755}},
		{Header: tar.Header{Name: "./usr/tool", Mode: 0o755}, Content: "ELF"},
	}
	for _, extension := range []string{"", ".gz", ".xz", ".zst"} {
		t.Run("Compressed"+extension, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a.deb")
			if err := os.WriteFile(file, debiantest.Deb(t, "tool", extension, files...), 0o600); err != nil {
				t.Fatal(err)
			}
			var got []string
			err := debian.Walk(file, func(hdr *tar.Header, content io.Reader) error {
				data, err := io.ReadAll(content)
				got = append(got, hdr.Name+"="+string(data))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"usr=", "usr/tool=ELF"}, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			control, err := debian.Control(file)
			if err != nil || !strings.HasPrefix(string(control), "Package: tool\n") {
				t.Errorf("Control: got %q, %v", control, err)
			}
		})
	}
}

func TestWalkRefuses(t *testing.T) {
	whole := debiantest.Deb(t, "tool", ".xz", debiantest.File{Header: tar.Header{Name: "./tool", Mode: 0o755}, Content: "ELF"})
	for name, content := range map[string][]byte{
		"Page": []byte("<html>not found</html>"), "CutShort": whole[:len(whole)-40], "NoData": whole[:120], "Empty": nil,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a.deb")
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			err := debian.Walk(file, func(_ *tar.Header, content io.Reader) error {
				_, err := io.Copy(io.Discard, content)
				return err
			})
			if err == nil {
				t.Error("want an error for what is no whole package")
			}
		})
	}
}
