// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/hack/internal/checkout"
	"github.com/capstan-dev/capstan/hack/internal/cosign"
	"github.com/capstan-dev/capstan/hack/internal/image"
	"github.com/capstan-dev/capstan/hack/internal/progress"
)

// TestRelease publishes small images in place of the real ones, which TestBuild builds twice, and looks at what others get.
func TestRelease(t *testing.T) {
	host := newRegistry(t)
	key := newKey(t)
	p, images := fixture(t, "one")
	state := checkout.State{Commit: strings.Repeat("01", 20), Time: time.Unix(1767323045, 0).UTC()}
	c := releaseCmd{Registry: host, Platform: []string{"linux/amd64", "linux/arm64"}}
	folder := filepath.Join(t.TempDir(), "v0.3.0")
	if err := c.write(p, folder, images, state, key); err != nil {
		t.Fatal(err)
	}
	there := remoteRegistry{host: host}
	transparency := newLog(t)
	for _, again := range []bool{false, true} {
		if err := there.publish(t.Context(), p, images, key, transparency); err != nil {
			t.Fatalf("publish, again %t: %v", again, err)
		}
	}

	t.Run("Pinned", func(t *testing.T) {
		got := map[string]string{}
		for doc := range strings.SplitSeq(string(file(t, folder, "configuration.yaml")), "\n---\n") {
			var o struct {
				Kind     string                `json:"kind"`
				Metadata struct{ Name string } `json:"metadata"`
				Spec     struct {
					Package          string                `json:"package"`
					RuntimeConfigRef struct{ Name string } `json:"runtimeConfigRef"`
				} `json:"spec"`
			}
			if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
				t.Fatal(err)
			}
			if o.Kind != "" {
				got[o.Kind] = o.Metadata.Name + " " + o.Spec.Package + " " + o.Spec.RuntimeConfigRef.Name
			}
		}
		want := map[string]string{}
		for _, a := range artifacts() {
			if a.Kind == "" {
				continue
			}
			runtime := a.Name
			if a.Program == "" {
				runtime = ""
			}
			want[strings.ToUpper(a.Kind[:1])+a.Kind[1:]] = fmt.Sprintf("%s %s@%s %s", a.installed(), a.repository(publicRegistry), served(t, host, a.Name, testVersion), runtime)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the packages of configuration.yaml are those that the registry serves: -want, +got:\n%s", diff)
		}
		var list []string
		for _, a := range artifacts() {
			list = append(list, fmt.Sprintf("%s/capstan-dev/%s:%s@%s", host, a.Name, testVersion, served(t, host, a.Name, testVersion)))
		}
		if diff := cmp.Diff(list, strings.Fields(string(file(t, folder, "images.txt")))); diff != "" {
			t.Errorf("images.txt: -want, +got:\n%s", diff)
		}
	})

	t.Run("Signed", func(t *testing.T) {
		for _, img := range images {
			tag, err := name.NewTag(fmt.Sprintf("%s/capstan-dev/%s:%s", host, img.Name, cosign.Tag(img.digest)))
			if err != nil {
				t.Fatal(err)
			}
			signatures, err := remote.Image(tag)
			if err != nil {
				t.Fatal(err)
			}
			if err := cosign.VerifyImage(signatures, img.digest, file(t, folder, "cosign.pub")); err != nil {
				t.Errorf("%s: %v", img.Name, err)
			}
			layers, err := signatures.Layers()
			if err != nil || len(layers) != 1 {
				t.Errorf("%s: a second run must not sign again, got %d signatures, %v", img.Name, len(layers), err)
			}
		}
		verification := string(file(t, folder, "verification.yaml"))
		for _, want := range []string{
			"prefix: ghcr.io/capstan-dev/", "prefix: " + host + "/capstan-dev/", "cosign.pub: " + base64.StdEncoding.EncodeToString(key.Public()),
		} {
			if !strings.Contains(verification, want) {
				t.Errorf("verification.yaml lacks %q", want)
			}
		}
	})

	t.Run("Mirror", func(t *testing.T) {
		if mirror := string(file(t, folder, "mirror.yaml")); strings.Contains(mirror, exampleRegistry) || !strings.Contains(mirror, "prefix: "+host+"/") {
			t.Errorf("mirror.yaml has to name the registry of the release, got\n%s", mirror)
		}
	})

	t.Run("Checksums", func(t *testing.T) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), "checksums.txt") {
				sum := sha256.Sum256(file(t, folder, e.Name()))
				fmt.Fprintf(&want, "%s  %s\n", hex.EncodeToString(sum[:]), e.Name())
			}
		}
		sums := file(t, folder, "checksums.txt")
		if diff := cmp.Diff(want.String(), string(sums)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(file(t, folder, "checksums.txt.sig"))))
		if err != nil {
			t.Fatal(err)
		}
		if err := cosign.Verify(sums, signature, key.Public()); err != nil {
			t.Errorf("checksums.txt: %v", err)
		}
		sums[0] ^= 1
		if err := cosign.Verify(sums, signature, key.Public()); err == nil {
			t.Error("checksums.txt with one byte changed must not verify")
		}
	})

	t.Run("Described", func(t *testing.T) {
		for _, img := range images {
			var statement struct {
				Subject []struct {
					Digest map[string]string `json:"digest"`
				} `json:"subject"`
			}
			if err := json.Unmarshal(file(t, folder, "provenance-"+img.Name+".intoto.json"), &statement); err != nil {
				t.Fatal(err)
			}
			if got := statement.Subject[0].Digest["sha256"]; got != img.digest.Hex {
				t.Errorf("provenance of %s: want digest %s, got %s", img.Name, img.digest.Hex, got)
			}
			if img.Program == "" {
				continue
			}
			if !strings.Contains(string(file(t, folder, "sbom-"+img.Name+".cdx.json")), "pkg:golang/github.com/alecthomas/kong@v") {
				t.Errorf("the SBOM of %s lacks a module of its program", img.Name)
			}
		}
		for image, name := range map[string]string{"postgres": "patroni", "mysql": "mysql-server-core"} {
			if !strings.Contains(string(file(t, folder, "sbom-"+image+".cdx.json")), "pkg:deb/debian/"+name+"@") {
				t.Errorf("the SBOM of %s lacks a package of Debian", image)
			}
			if !strings.Contains(string(file(t, folder, "provenance-function-capstan.intoto.json")), "pkg:oci/"+image) {
				t.Errorf("the provenance of the function lacks the image %s, whose digest it names", image)
			}
			if !strings.Contains(string(file(t, folder, "provenance-"+image+".intoto.json")), "images/"+image+"/packages.lock") {
				t.Errorf("the provenance of %s lacks its lock", image)
			}
		}
	})

	t.Run("NeverOverwritten", func(t *testing.T) {
		other, changed := fixture(t, "two")
		err := there.publish(t.Context(), other, changed, key, transparency)
		if err == nil || !strings.Contains(err.Error(), "set VERSION to a higher one") {
			t.Errorf("want a refusal, got %v", err)
		}
		for _, img := range changed {
			if got := served(t, host, img.Name, img.digest.String()); got != "" {
				t.Errorf("%s of the refused release is in the registry", img.Name)
			}
		}
	})

	t.Run("Unsigned", func(t *testing.T) {
		bare := filepath.Join(t.TempDir(), "bare")
		if err := c.write(p, bare, images, state, nil); err != nil {
			t.Fatal(err)
		}
		for _, absent := range []string{"verification.yaml", "cosign.pub", "checksums.txt.sig"} {
			if _, err := os.Stat(filepath.Join(bare, absent)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a release without signatures must not have %s, got %v", absent, err)
			}
		}
		if !strings.Contains(string(file(t, bare, "configuration.yaml")), "UNSIGNED") || strings.Contains(string(file(t, folder, "configuration.yaml")), "UNSIGNED") {
			t.Error("configuration.yaml has to say whether a release is unsigned")
		}
	})
}

// TestReleaseWithoutLog expects that nothing is in the registry when signatures cannot be recorded.
func TestReleaseWithoutLog(t *testing.T) {
	host := newRegistry(t)
	p, images := fixture(t, "one")
	err := remoteRegistry{host: host}.publish(t.Context(), p, images, newKey(t), &cosign.Log{URL: "http://127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "check REKOR_URL") {
		t.Errorf("want the remedy, got %v", err)
	}
	for _, img := range images {
		if got := served(t, host, img.Name, img.digest.String()); got != "" {
			t.Errorf("%s is in the registry all the same", img.Name)
		}
	}
}

func TestReleaseRefused(t *testing.T) {
	forbidding := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[r.URL.Path == "/v2/"])
	}))
	t.Cleanup(forbidding.Close)
	host := newRegistry(t)
	commit := func(t *testing.T, dir string) {
		t.Helper()
		gitRun(t, dir, "commit", "--quiet", "--allow-empty", "--message=one")
	}
	cases := map[string]struct {
		reason  string
		prepare func(t *testing.T, dir string)
		change  func(c *releaseCmd)
		want    string
		// compiles reports that the error ends with what the compiler says.
		compiles bool
	}{
		"Dirty": {
			reason: "nobody could build it again",
			prepare: func(t *testing.T, dir string) {
				t.Helper()
				write(filepath.Join(dir, "new"), nil)
			},
			want: `1 changes are in no commit, the first is "?? new": commit them`,
		},
		"OtherCommit": {
			reason: "a tag and its release have to be one",
			prepare: func(t *testing.T, dir string) {
				t.Helper()
				gitRun(t, dir, "tag", testVersion)
				commit(t, dir)
			},
			want: "run `git checkout v0.3.0`",
		},
		"Drift": {
			reason: "other packages of Debian would get in",
			prepare: func(t *testing.T, _ string) {
				t.Helper()
				t.Setenv("CAPSTAN_DEBIAN_DRIFT", "true")
			},
			want: "unset it",
		},
		"NoKey":   {reason: "unsigned is a choice", change: func(c *releaseCmd) { c.Key = "" }, want: "or set SIGN=none"},
		"Refuses": {reason: "the build would be for nothing", change: func(c *releaseCmd) { c.Registry = hostOf(forbidding) }, want: "it refuses this account (Forbidden): log in"},
		"Away":    {reason: "so it would", change: func(c *releaseCmd) { c.Registry = "127.0.0.1:1" }, want: "check REGISTRY and the network"},
		"BadName": {reason: "a registry has no path", change: func(c *releaseCmd) { c.Registry = "UPPER case" }, want: "a registry looks like ghcr.io"},
		"NoBuild": {reason: "what cannot be built ends before anything is pushed", want: "cannot run \"go build", compiles: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			gitRun(t, dir, "init", "--quiet")
			commit(t, dir)
			if tc.prepare != nil {
				tc.prepare(t, dir)
			}
			p := &project{Printer: progress.New(t.Output()), root: dir, version: testVersion, crossplane: "/no/such/program"}
			key := filepath.Join(t.TempDir(), "key")
			c := releaseCmd{Registry: host, Platform: []string{"linux/amd64"}, Folder: t.TempDir(), Sign: "key", Key: key, Log: "http://127.0.0.1:1"}
			if out, err := exec.CommandContext(t.Context(), "openssl", "ecparam", "-name", "prime256v1", "-genkey", "-out", key).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if tc.change != nil {
				tc.change(&c)
			}
			err := c.Run(t.Context(), p)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !tc.compiles && strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: want one line with %q, got %v", tc.reason, tc.want, err)
			}
			if left, err := os.ReadDir(c.Folder); err != nil || len(left) > 0 {
				t.Errorf("want no files, got %v, %v", left, err)
			}
		})
	}
	for _, err := range []error{fmt.Errorf("cannot write: %w", syscall.ENOSPC), errors.New("cannot run \"go build\"\n# pkg\nwrite $WORK/b001: no space left on device\n")} {
		if got := explainDisk(err).Error(); !strings.Contains(got, "set TMPDIR") || !strings.HasSuffix(got, ": no space left on device") || strings.Contains(got, "\n") {
			t.Errorf("want the remedy for a full disk in one line, got %q", got)
		}
	}
	if err := explainDisk(io.EOF); !errors.Is(err, io.EOF) || strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("another error has another remedy: %v", err)
	}
}

// TestAnnotated expects the annotation by which Crossplane finds the layer that is a package.
func TestAnnotated(t *testing.T) {
	img, err := image.Build(t.Context(), image.Spec{Platform: testPlatform, Files: []image.File{{Path: "/package.yaml", Mode: 0o644}}})
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.Config.Labels = map[string]string{"io.crossplane.xpkg:" + digest.String(): "base"}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	if img, err = annotated(img); err != nil {
		t.Fatal(err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"io.crossplane.xpkg": "base"}, manifest.Layers[0].Annotations); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
