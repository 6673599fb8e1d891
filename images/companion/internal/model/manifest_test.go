// SPDX-License-Identifier: Apache-2.0

package model

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// digest is what the command in the comment of Manifest.Digest prints of the files of write.
const digest = "sha256:74a4e97a06b2ae6e05675e2b6cc5883e9d17a9390122de7c057e57b0ef550614"

// write a model into a folder.
func write(t *testing.T, dir string) {
	t.Helper()
	for name, content := range map[string]string{"a/model.bin": "weights", "config.json": "{}", "a b": "x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func TestDigest(t *testing.T) {
	dir := t.TempDir()
	write(t, dir)
	m, err := Of(t.Context(), open(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Digest(); got != digest || m.Size() != 10 {
		t.Errorf("want the digest that sha256sum gives, %s, and 10 bytes, got %s and %d", digest, got, m.Size())
	}
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again); diff != "" {
		t.Errorf("a manifest that was written and read: -want, +got:\n%s", diff)
	}
}

func TestMatches(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(dir string) error
		want   string
	}{
		"Same": {reason: "Nothing has changed.", change: func(string) error { return nil }},
		"Truncated": {
			reason: "A disk that was full once.",
			change: func(dir string) error { return os.Truncate(filepath.Join(dir, "a/model.bin"), 3) },
			want:   `file "a/model.bin" has 3 bytes instead of 7`,
		},
		"Missing": {
			reason: "Somebody has cleaned up.",
			change: func(dir string) error { return os.Remove(filepath.Join(dir, "a b")) },
			want:   `file "a b" is missing`,
		},
		"More": {
			reason: "Servers load what they find.",
			change: func(dir string) error { return os.WriteFile(filepath.Join(dir, "z"), nil, 0o600) },
			want:   `file "z" does not belong to it`,
		},
		"NoFile": {
			reason: "A link is no file, whatever it leads to.",
			change: func(dir string) error {
				if err := os.Remove(filepath.Join(dir, "a b")); err != nil {
					return err
				}
				return os.Symlink("config.json", filepath.Join(dir, "a b"))
			},
			want: `file "a b" is missing`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir)
			root := open(t, dir)
			m, err := Of(t.Context(), root)
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.change(dir); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := m.Matches(root); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nMatches(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadGarbage(t *testing.T) {
	sum := strings.Repeat("0", 64)
	for garbage, reason := range map[string]string{
		"x":                  "no digest at all",
		sum + "00 1 a":       "a digest that is too long",
		sum[:62] + " 1 a":    "one that is too short",
		sum + " -1 a":        "a negative size",
		sum + " 1 ../../etc": "a path that leads out",
		sum + " 1":           "no path",
	} {
		if m, err := Read(strings.NewReader(garbage + "\n")); err == nil {
			t.Errorf("Read(%q), %s: want an error, got %v", garbage, reason, m)
		}
	}
}
