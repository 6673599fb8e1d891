// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/krew"
)

// TestPlugin builds the plugin for this platform as a release does, runs it, and reads the manifest of Krew.
func TestPlugin(t *testing.T) {
	p := newProject(t)
	p.created = time.Unix(1767323045, 0)
	if err := p.buildPlugin(t.Context(), []string{testPlatform}); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	if err := p.addPlugin(files, []string{testPlatform}); err != nil {
		t.Fatal(err)
	}
	name := "kubectl-capstan-v0.3.0-linux-amd64.tar.gz"
	got := map[string]string{}
	compressed, err := gzip.NewReader(bytes.NewReader(files[name]))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(compressed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = fmt.Sprintf("%o %d", h.Mode, h.ModTime.Unix())
		// A third of it are the planners, for the subcommand plan.
		if h.Name == "kubectl-capstan" && h.Size > 44<<20 {
			t.Errorf("the program has %d bytes", h.Size)
		}
	}
	want := map[string]string{"kubectl-capstan": "755 1767323045", "kubectl_complete-capstan": "755 1767323045", "licenses/capstan": "644 1767323045", "licenses/modules": "644 1767323045"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of the archive: -want, +got:\n%s", diff)
	}

	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(p.output, name), "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "kubectl-capstan"), "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "kubectl-capstan v0.3.0 linux/amd64") {
		t.Errorf("want the version of the release, got %q, %v", out, err)
	}

	var manifest struct {
		Spec struct {
			Version   string `json:"version"`
			Platforms []struct {
				URI    string `json:"uri"`
				SHA256 string `json:"sha256"`
				Bin    string `json:"bin"`
			} `json:"platforms"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(files[krew.File], &manifest); err != nil {
		t.Fatal(err)
	}
	one := manifest.Spec.Platforms
	if len(one) != 1 || one[0].Bin != "kubectl-capstan" || one[0].SHA256 != fmt.Sprintf("%x", sha256.Sum256(files[name])) ||
		one[0].URI != homepage+"/releases/download/v0.3.0/"+name || manifest.Spec.Version != "v0.3.0" {
		t.Errorf("the manifest does not fit the archive: %s", files[krew.File])
	}
}
