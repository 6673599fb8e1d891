// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/capstan-dev/capstan/hack/internal/cosign"
	"github.com/capstan-dev/capstan/hack/internal/cosign/logtest"
	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// fixture builds an image for each artifact, whose program is a small one with modules.
func fixture(t *testing.T, content string) (*project, []releasedImage) {
	t.Helper()
	p := &project{Printer: progress.New(t.Output()), root: root(t), output: t.TempDir(), version: testVersion}
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "../programs").CombinedOutput(); err != nil {
		t.Fatalf("cannot build a program: %v\n%s", err, out)
	}
	images := make([]releasedImage, 0, len(artifacts()))
	for _, a := range artifacts() {
		platforms := []string{"linux/amd64", "linux/arm64"}
		if a.Program == "" {
			platforms = platforms[:1]
		}
		for _, platform := range platforms {
			spec := image.Spec{Platform: platform, Files: []image.File{{Path: "/content", Mode: 0o644, Content: []byte(content + a.Name)}}}
			if a.Program != "" {
				spec.Files = append(spec.Files, image.File{Path: a.program(), Mode: 0o755, Source: program})
			}
			img, err := image.Build(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			tag, err := name.NewTag(a.reference(publicRegistry, p.version))
			if err != nil {
				t.Fatal(err)
			}
			if err := tarball.WriteToFile(filepath.Join(p.output, a.file(p.version, platform)), tag, img); err != nil {
				t.Fatal(err)
			}
		}
		files, err := a.built(p.output, p.version)
		if err != nil {
			t.Fatal(err)
		}
		img, err := assemble(a, files)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, img)
	}
	return p, images
}

// served returns the digest that a registry has under a tag or a digest, nothing when it has none.
func served(t *testing.T, host, repository, identifier string) string {
	t.Helper()
	separator := ":"
	if strings.Contains(identifier, ":") {
		separator = "@"
	}
	ref, err := name.ParseReference(host + "/capstan-dev/" + repository + separator + identifier)
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Get(ref)
	if absent(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return found.Digest.String()
}

func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return hostOf(server)
}

func hostOf(server *httptest.Server) string { return strings.TrimPrefix(server.URL, "http://") }

func newLog(t *testing.T) *cosign.Log {
	t.Helper()
	handler, err := logtest.New()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &cosign.Log{URL: server.URL}
}

func newKey(t *testing.T) *cosign.Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := cosign.NewKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func file(t *testing.T, folder, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func gitRun(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.org"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
}
