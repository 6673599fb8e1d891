// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/capstan-dev/capstan/hack/internal/image"
)

func TestPush(t *testing.T) {
	srv := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer srv.Close()
	host := strings.TrimPrefix(srv.URL, "http://")

	p := newProject(t)
	demo := find(t, "demo-algorithm")
	cmd := pushCmd{Registry: host, Only: []string{demo.Name}}

	if err := cmd.Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "build it first") {
		t.Errorf("a push before the build: want a hint to build, got %v", err)
	}

	write := func(content string) {
		for _, platform := range []string{"linux/amd64", "linux/arm64"} {
			img, err := image.Build(t.Context(), image.Spec{
				Platform: platform,
				Files:    []image.File{{Path: "/content", Mode: 0o644, Content: []byte(content)}},
			})
			if err != nil {
				t.Fatal(err)
			}
			tag, err := name.NewTag(demo.reference(publicRegistry, p.version))
			if err != nil {
				t.Fatal(err)
			}
			if err := tarball.WriteToFile(filepath.Join(p.output, demo.file(p.version, platform)), tag, img); err != nil {
				t.Fatal(err)
			}
		}
	}

	write("one")
	for _, again := range []bool{false, true} {
		if err := cmd.Run(t.Context(), p); err != nil {
			t.Fatalf("push, again %t: %v", again, err)
		}
	}
	tag, err := name.NewTag(demo.reference(host, p.version))
	if err != nil {
		t.Fatal(err)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		img, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
		if err != nil {
			t.Fatalf("cannot find the image for %s under one tag: %v", architecture, err)
		}
		if got := string(unpack(t, img)["content"]); got != "one" {
			t.Errorf("%s: want what was built, got %q", architecture, got)
		}
	}

	write("two")
	if err := cmd.Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "set VERSION to a higher one") {
		t.Errorf("a version that was pushed never changes: want a refusal, got %v", err)
	}
	if err := demo.discard(p.output, p.version); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(p.output); err != nil || len(left) > 0 {
		t.Errorf("discard: want nothing left, got %v, %v", left, err)
	}
}

func TestVersion(t *testing.T) {
	for version, reason := range map[string]string{
		"0.1.0":      "tags of packages start with v",
		"v0.1":       "Crossplane ignores incomplete versions",
		"latest":     "a version can be compared",
		"v0.1.0+abc": "a tag cannot hold a plus",
	} {
		if _, err := open(t.Context(), version, "", nil); err == nil || !strings.Contains(err.Error(), "a version looks like") {
			t.Errorf("version %q: %s: want a refusal, got %v", version, reason, err)
		}
	}
}
