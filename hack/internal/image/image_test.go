// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestBuild(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("ELF"), 0o700); err != nil {
		t.Fatal(err)
	}
	type entry struct {
		Name    string
		Link    string
		Content string
		Mode    int64
	}
	cases := map[string]struct {
		reason string
		files  []File
		want   []entry
	}{
		"FromDisk": {
			reason: "Content comes from this machine, the mode from the Spec.",
			files:  []File{{Path: "/program", Mode: 0o755, Source: program}},
			want:   []entry{{Name: "program", Content: "ELF", Mode: 0o755}},
		},
		"ParentsFirst": {
			reason: "Folders nobody listed come before what is in them, and entries are sorted.",
			files:  []File{{Path: "/b/c/d", Mode: 0o644, Content: []byte("x")}, {Path: "/a", Mode: 0o600}},
			want: []entry{
				{Name: "a", Mode: 0o600},
				{Name: "b/", Mode: 0o755},
				{Name: "b/c/", Mode: 0o755},
				{Name: "b/c/d", Content: "x", Mode: 0o644},
			},
		},
		"FoldersAndLinks": {
			reason: "A listed folder keeps its mode, a link its target.",
			files: []File{
				{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
				{Path: "/tmp/l", Link: "../program"},
			},
			want: []entry{{Name: "tmp/", Mode: 0o1777}, {Name: "tmp/l", Link: "../program", Mode: 0o777}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			img, err := Build(t.Context(), Spec{Platform: "linux/arm64", Files: tc.files})
			if err != nil {
				t.Fatal(err)
			}
			var got []entry
			for r := layer(t, img); ; {
				hdr, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				content, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, entry{hdr.Name, hdr.Linkname, string(content), hdr.Mode})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			cfg, err := img.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if cfg.OS != "linux" || cfg.Architecture != "arm64" {
				t.Errorf("the platform is %s/%s", cfg.OS, cfg.Architecture)
			}
		})
	}
}

func layer(t *testing.T, img v1.Image) *tar.Reader {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("want one layer, got %d, %v", len(layers), err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return tar.NewReader(r)
}

func TestBuildTwice(t *testing.T) {
	spec := Spec{
		Platform: "linux/amd64", User: "65532", Entrypoint: []string{"/a"}, Labels: map[string]string{"x": "y", "a": "b"},
		Files: []File{{Path: "/a", Mode: 0o755, Content: []byte("a")}, {Path: "/b/c", Mode: 0o644, Content: []byte("c")}},
	}
	digests := make([]v1.Hash, 0, 2)
	for range 2 {
		img, err := Build(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("one Spec gives two images: %v", digests)
	}
}

func TestEnsure(t *testing.T) {
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	r := &Registry{Host: strings.TrimPrefix(server.URL, "http://")}
	spec := Spec{Platform: "linux/amd64", Files: []File{{Path: "/a", Mode: 0o755, Content: []byte("a")}}}
	ref, err := r.Ensure(t.Context(), "test", "v1", spec)
	if err != nil {
		t.Fatal(err)
	}
	want, err := r.inputs(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	spec.Files[0].Content = []byte("b")
	if _, err := r.Ensure(t.Context(), "test", "v1", spec); err != nil {
		t.Fatal(err)
	}
	got, err := r.inputs(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if got == want || got == "" {
		t.Errorf("the tag still has the image of the old content: %q", got)
	}
}
