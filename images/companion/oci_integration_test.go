// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// images is a registry that wants a login for what is private.
type images struct {
	host string
	// cut is how many blobs of the next are cut off in the middle.
	cut atomic.Int32
}

func newImages(t *testing.T) *images {
	t.Helper()
	i := &images{}
	inner := registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/private/") && (user != "me" || password != "secret") {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"errors": [{"code": "UNAUTHORIZED", "message": "who are you?"}]}`)
			return
		}
		if r.URL.Path == "/v2/" && r.Header.Get("Authorization") == "" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") && i.cut.Add(-1) >= 0 {
			answer := httptest.NewRecorder()
			inner.ServeHTTP(answer, r)
			maps.Copy(w.Header(), answer.Header())
			w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(w, r)
	}))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	t.Cleanup(srv.Close)
	i.host = strings.TrimPrefix(srv.URL, "http://")
	return i
}

// push an image and return its digest.
func (i *images) push(t *testing.T, repository string, img v1.Image) string {
	t.Helper()
	tag, err := name.NewTag(i.host + "/" + repository)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, img, remote.WithAuth(&authn.Basic{Username: "me", Password: "secret"})); err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// packed is a compressed tar archive of files.
func packed(t *testing.T, kind types.MediaType, files ...string) v1.Layer {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []io.Closer{w, z} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return static.NewLayer(b.Bytes(), kind)
}

func build(t *testing.T, base v1.Image, layers ...mutate.Addendum) v1.Image {
	t.Helper()
	img, err := mutate.Append(base, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestOCI(t *testing.T) {
	i := newImages(t)
	content := random(30 << 20)
	container := build(t, empty.Image,
		mutate.Addendum{Layer: packed(t, types.DockerLayer, "models/model.bin", content, "models/old", "1")},
		mutate.Addendum{Layer: packed(t, types.DockerLayer, "models/.wh.old", "", "models/new", "2")})
	digest := i.push(t, "models/container:7", container)
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), "application/vnd.cncf.model.config.v1+json")
	title := func(name string) map[string]string { return map[string]string{"org.opencontainers.image.title": name} }
	i.push(t, "models/artifact:7", build(t, artifact,
		mutate.Addendum{Layer: static.NewLayer([]byte(content), "application/vnd.cncf.model.weight.v1.raw"), Annotations: title("weights/model.bin")},
		mutate.Addendum{Layer: packed(t, "application/vnd.cncf.model.weight.config.v1.tar+gzip", "config.json", "{}")}))
	i.push(t, "private/reco:7", build(t, artifact, mutate.Addendum{Layer: static.NewLayer([]byte("weights"), "text/plain"), Annotations: title("model.bin")}))
	i.push(t, "models/escape:7", build(t, empty.Image, mutate.Addendum{Layer: packed(t, types.DockerLayer, "../../escaped", "x")}))
	i.push(t, "models/nameless:7", build(t, artifact, mutate.Addendum{Layer: static.NewLayer([]byte("x"), "text/plain")}))
	fetch := func(credentials map[string]string, reference string, args ...string) (*process, string) {
		cache := t.TempDir()
		return start(t, credentials, append([]string{"--source=oci://" + i.host + "/" + reference, "--cache=" + cache, "--key=reco"}, args...)...), cache
	}
	want := map[string]string{"models/model.bin": content, "models/new": "2"}
	i.cut.Store(2)
	p, cache := fetch(nil, "models/container@"+digest, "--digest="+digestOf(t, folder(t, want)))
	p.succeed()
	holds(t, cache, "reco", want)
	if i.cut.Load() > 0 {
		t.Error("want downloads to break in the middle")
	}
	i.cut.Store(1)
	p, cache = fetch(nil, "models/artifact:7")
	p.succeed()
	holds(t, cache, "reco", map[string]string{"weights/model.bin": content, "config.json": "{}"})
	login := func(password string) map[string]string {
		auth := base64.StdEncoding.EncodeToString([]byte("me:" + password))
		return map[string]string{".dockerconfigjson": fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, i.host, auth)}
	}
	p, cache = fetch(login("secret"), "private/reco:7")
	p.succeed()
	holds(t, cache, "reco", map[string]string{"model.bin": "weights"})
	p, _ = fetch(login("wrong"), "private/reco:7")
	p.fail("ModelForbidden: ", "who are you?")
	p, _ = fetch(nil, "private/reco:7")
	p.fail("ModelForbidden: ", "who are you?")
	p, _ = fetch(nil, "models/none:7")
	p.fail("ModelNotFound: ", "models/none:7")
	p, cache = fetch(nil, "models/escape:7")
	p.fail("ModelInvalid: ", `"../../escaped"`)
	clean(t, cache)
	p, _ = fetch(nil, "models/nameless:7")
	p.fail("ModelInvalid: ", "has no name")
	p, _ = fetch(nil, "models/container:7", "--size=1000")
	p.fail("ModelSizeMismatch: ", "more than the 1000 bytes")
}

// TestOCITampered shows that a registry, or who is between, cannot replace what a digest names.
func TestOCITampered(t *testing.T) {
	inner := registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)))
	var tamper atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		part, _ := tamper.Load().(string)
		if r.Method != http.MethodGet || part == "" || !strings.Contains(r.URL.Path, part) {
			inner.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		_, _ = w.Write(bytes.ReplaceAll(answer.Body.Bytes(), []byte("weights"), []byte("WEIGHTS")))
	}))
	t.Cleanup(srv.Close)
	i := &images{host: strings.TrimPrefix(srv.URL, "http://")}
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), "application/vnd.oci.empty.v1+json")
	digest := i.push(t, "reco:7", build(t, artifact, mutate.Addendum{
		Layer: static.NewLayer([]byte("weights"), "text/plain"), Annotations: map[string]string{"org.opencontainers.image.title": "weights"},
	}))
	for part, says := range map[string]string{"/blobs/": `file "weights" has SHA256`, "/manifests/": "has another digest than its reference says"} {
		tamper.Store(part)
		p := start(t, nil, "--source=oci://"+i.host+"/reco@"+digest, "--cache="+t.TempDir(), "--key=reco")
		p.fail("ModelDigestMismatch: ", says)
	}
}
