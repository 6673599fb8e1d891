// SPDX-License-Identifier: Apache-2.0

package attest_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/capstan-dev/capstan/hack/internal/attest"
	"github.com/capstan-dev/capstan/hack/internal/debian"
)

func subject() attest.Subject {
	return attest.Subject{
		Name: "companion", Repository: "registry.example.org/capstan-dev/companion", Version: "v0.1.0",
		Digest: v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("ab", 32)}, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// component is what these tests look at in one.
type component struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

func TestSBOM(t *testing.T) {
	// A program with modules; a test does not list its own.
	file := filepath.Join(t.TempDir(), "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", file, "../../programs").CombinedOutput(); err != nil {
		t.Fatalf("cannot build a program: %v\n%s", err, out)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	packages := []debian.Package{{Architecture: "amd64", Suite: "sid", Name: "busybox", Version: "1:1.38.0-3+b1", SHA256: strings.Repeat("cd", 32)}}
	sbom, err := attest.SBOM(subject(), [][]byte{program, program}, packages)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		BOMFormat    string `json:"bomFormat"`
		SerialNumber string `json:"serialNumber"`
		Metadata     struct {
			Timestamp string    `json:"timestamp"`
			Component component `json:"component"`
		} `json:"metadata"`
		Components []component `json:"components"`
	}
	if err := json.Unmarshal(sbom, &got); err != nil {
		t.Fatal(err)
	}
	if got.BOMFormat != "CycloneDX" || got.Metadata.Timestamp != "2026-01-02T03:04:05Z" || got.Metadata.Component.Version != "v0.1.0" {
		t.Errorf("want an SBOM of this version, dated as its commit, got %+v", got.Metadata)
	}
	want := map[string]string{
		"stdlib": "pkg:golang/stdlib@", "github.com/alecthomas/kong": "pkg:golang/github.com/alecthomas/kong@v",
		"busybox": "pkg:deb/debian/busybox@1%3A1.38.0-3%2Bb1?arch=amd64&distro=sid",
	}
	for name, purl := range want {
		count := 0
		for _, c := range got.Components {
			if c.Name == name && strings.HasPrefix(c.PURL, purl) && c.Version != "" {
				count++
			}
		}
		if count != 1 {
			t.Errorf("want %s once, as %s, got it %d times", name, purl, count)
		}
	}
	if !slices.IsSortedFunc(got.Components, func(a, b component) int { return strings.Compare(a.PURL, b.PURL) }) {
		t.Error("components are not sorted")
	}
	again, err := attest.SBOM(subject(), [][]byte{program}, packages)
	if diff := cmp.Diff(string(sbom), string(again)); err != nil || diff != "" {
		t.Errorf("the same image gives another SBOM: %v\n%s", err, diff)
	}
	for name, programs := range map[string][][]byte{"Text": {[]byte("#!/bin/sh")}, "Nothing": nil} {
		if _, err := attest.SBOM(subject(), programs, nil); err == nil {
			t.Errorf("%s: an SBOM that lists nothing must not be written", name)
		}
	}
}

func TestProvenance(t *testing.T) {
	build := attest.Build{
		Type: "https://example.org/build", Builder: "https://example.org/builder",
		Parameters: map[string]any{"version": "v0.1.0", "platforms": []any{"linux/amd64"}},
		Materials: []attest.Material{
			{Name: "source", URI: "git+https://example.org/capstan", Digests: map[string]string{"gitCommit": strings.Repeat("01", 20)}, Annotations: map[string]any{"dirty": true}},
			{Name: "go", URI: "https://go.dev/dl/go1.26.8"},
		},
	}
	got, err := attest.Provenance(subject(), build)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "_type": "https://in-toto.io/Statement/v1",
  "predicate": {
    "buildDefinition": {
      "buildType": "https://example.org/build",
      "externalParameters": {
        "platforms": [
          "linux/amd64"
        ],
        "version": "v0.1.0"
      },
      "resolvedDependencies": [
        {
          "annotations": {
            "dirty": true
          },
          "digest": {
            "gitCommit": "` + strings.Repeat("01", 20) + `"
          },
          "name": "source",
          "uri": "git+https://example.org/capstan"
        },
        {
          "name": "go",
          "uri": "https://go.dev/dl/go1.26.8"
        }
      ]
    },
    "runDetails": {
      "builder": {
        "id": "https://example.org/builder"
      }
    }
  },
  "predicateType": "https://slsa.dev/provenance/v1",
  "subject": [
    {
      "digest": {
        "sha256": "` + strings.Repeat("ab", 32) + `"
      },
      "name": "registry.example.org/capstan-dev/companion"
    }
  ]
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	build.Builder = ""
	if _, err := attest.Provenance(subject(), build); err == nil {
		t.Error("provenance has to name a builder")
	}
}
