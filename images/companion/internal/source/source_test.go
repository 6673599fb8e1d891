// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/transfer"
)

func reference(tb testing.TB) name.Reference {
	tb.Helper()
	ref, err := name.ParseReference("registry.example.org/models/reco:7")
	if err != nil {
		tb.Fatal(err)
	}
	return ref
}

func TestNew(t *testing.T) {
	for uri, reason := range map[string]string{
		"ftp://models/reco":                      "nobody has written that",
		"gs://models":                            "a whole bucket is no model",
		"hf://org":                               "it names no repository",
		"hf://org/repo@main/../x":                "it leads elsewhere",
		"http://user:pw@example.org/a":           "passwords belong into Secrets",
		"models:/reco/7":                         "the registry resolves that",
		"file:///etc/passwd":                     "files of the node are none of a model's",
		"s3:models/reco":                         "it names no bucket",
		"s3:///reco":                             "it names no bucket",
		"oci://Registry Of Ours":                 "it is no reference",
		"mlflow-artifacts:/a/../b":               "it leads elsewhere",
		"mlflow-artifacts:/":                     "everything is no model",
		"mlflow-artifacts://other.example.org/a": "it is on another server",
		"https://example.org/":                   "it names no file",
		"https://user:pw@example.org/a":          "passwords belong into Secrets",
		"\x7f:":                                  "it is no URI",
	} {
		_, err := New(t.Context(), uri, Options{Endpoint: "https://mlflow.example.org", Log: slog.New(slog.DiscardHandler)})
		if !failure.Is(err, failure.Invalid) {
			t.Errorf("New(%q), %s: want %s, got %v", uri, reason, failure.Invalid, err)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("New(%q): the password is told: %v", uri, err)
		}
	}
}

func TestReadCredentials(t *testing.T) {
	login := func(user, password string) string {
		return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   Credentials
		err    string
	}{
		"Bucket": {
			reason: "The connection Secret of a Bucket; people's Secrets often end with a newline.",
			files: map[string]string{
				"endpoint": "https://s3.example.org", "region": "here", "bucket": "models", "accessKeyId": "id", "secretAccessKey": "secret\n",
			},
			want: Credentials{Endpoint: "https://s3.example.org", Region: "here", Bucket: "models", AccessKeyID: "id", SecretAccessKey: "secret"},
		},
		"Half": {
			reason: "Half a key opens nothing.", files: map[string]string{"accessKeyId": "id"},
			err: "the credentials have only one of accessKeyId and secretAccessKey",
		},
		"Docker": {
			reason: "Registries are written in many ways.",
			files: map[string]string{".dockerconfigjson": fmt.Sprintf(
				`{"auths": {"https://index.docker.io/v1/": {"auth": %q}, "registry.example.org": {"username": "u", "password": "p"}}}`, login("me", "secret"))},
			want: Credentials{Docker: map[string]authn.AuthConfig{
				"index.docker.io": {Username: "me", Password: "secret", Auth: login("me", "secret")}, "registry.example.org": {Username: "u", Password: "p", Auth: login("u", "p")},
			}},
		},
		"BrokenDocker": {
			reason: "What is wrong is told, and nothing of what is in it.", files: map[string]string{".dockerconfigjson": `{"auths": "secret"}`},
			err: "the key .dockerconfigjson of the credentials cannot be read",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for key, value := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, key), []byte(value), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ReadCredentials(dir)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Fatalf("%s\nwant error %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			for host, want := range tc.want.Docker {
				auth, err := got.registry(host).Authorization()
				if err != nil || auth.Username != want.Username || auth.Password != want.Password {
					t.Errorf("%s\nlogin of %s: want %s, got %+v, %v", tc.reason, host, want.Username, auth, err)
				}
			}
			got.Docker, tc.want.Docker = nil, nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	title := "org.opencontainers.image.title"
	cases := map[string]struct {
		reason      string
		kind        types.MediaType
		container   bool
		annotations map[string]string
		want        layer
		err         string
	}{
		"Container": {
			reason: "Layers of a container image change those below.", kind: types.DockerLayer, container: true, want: layer{changes: true},
		},
		"ORASFile": {
			reason: "ORAS calls a file a tar archive, although it is none.",
			kind:   types.OCIUncompressedLayer, annotations: map[string]string{title: "weights/model.bin"}, want: layer{file: "weights/model.bin"},
		},
		"ORASFolder": {
			reason: "And says when it has packed a folder.",
			kind:   types.OCILayer, annotations: map[string]string{title: "weights", "io.deis.oras.content.unpack": "true"},
		},
		"ModelPackRaw": {
			reason: "A ModelPack names its files in an annotation of its own.",
			kind:   "application/vnd.cncf.model.weight.v1.raw", annotations: map[string]string{"org.cncf.model.filepath": "model.safetensors"},
			want: layer{file: "model.safetensors"},
		},
		"ModelPackTar": {
			reason: "Its archives have the names inside, whatever the annotation says.",
			kind:   "application/vnd.cncf.model.weight.v1.tar", annotations: map[string]string{"org.cncf.model.filepath": "weights"},
		},
		"ModelKit": {reason: "KitOps packs everything.", kind: "application/vnd.kitops.modelkit.model.v1.tar+gzip"},
		"Nameless": {
			reason: "A file without a name cannot be made.", kind: "application/octet-stream", err: "has no name",
		},
		"Escape": {
			reason: "Nor one outside of the model.", kind: "application/octet-stream", annotations: map[string]string{title: "../../etc/passwd"},
			err: "no path within a folder",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := v1.Descriptor{MediaType: tc.kind, Annotations: tc.annotations}
			got, err := classify(d, tc.container)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s\nwant error %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if got.file != tc.want.file || got.changes != tc.want.changes {
				t.Errorf("%s\nwant file %q, changes %t, got %q, %t", tc.reason, tc.want.file, tc.want.changes, got.file, got.changes)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	cases := map[string]struct {
		reason string
		status int
		want   failure.Reason // "" is worth another try
	}{
		"NotFound":     {reason: "It will not be there the next time.", status: 404, want: failure.NotFound},
		"Forbidden":    {reason: "Nor will it be allowed.", status: 403, want: failure.Forbidden},
		"Unauthorized": {reason: "Nor will we be known.", status: 401, want: failure.Forbidden},
		"Strange":      {reason: "A question that is not understood.", status: 400, want: failure.Invalid},
		"NotThere":     {reason: "What is not implemented will not be in five minutes.", status: 501, want: failure.Invalid},
		"Busy":         {reason: "This one may pass.", status: 503},
		"Throttled":    {reason: "So may this one.", status: 429},
		"Broken":       {reason: "And this one.", status: 500},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := refused("it", tc.status, "because", 7*time.Second)
			var temporary *transfer.TemporaryError
			if errors.As(err, &temporary) != (tc.want == "") || tc.want != "" && !failure.Is(err, tc.want) {
				t.Errorf("%s\nrefused(%d): want %q, got %v", tc.reason, tc.status, tc.want, err)
			}
			if !strings.Contains(err.Error(), "because") {
				t.Errorf("%s\nrefused(%d): want what the server says, got %v", tc.reason, tc.status, err)
			}
		})
	}
}

// TestWeb gets one file from a server that knows nothing of ranges.
func TestWeb(t *testing.T) {
	content := strings.Repeat("model ", 10_000)
	n := 0
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		n++
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		if n == 2 {
			_, _ = w.Write([]byte(content[:20_000]))
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write([]byte(content))
	}))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	defer srv.Close()
	u, err := url.Parse(srv.URL + "/models/reco.bin?signature=x")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	fetch := func(c Credentials) (map[string]string, error) {
		src, err := newWeb(u, Options{Credentials: c, Log: log, Options: transfer.Options{
			Retry: transfer.Retry{Limit: 5 * time.Second, Log: log}, Parallel: 2, Progress: transfer.NewProgress(t.Context(), log, time.Hour),
		}})
		if err != nil {
			return nil, err
		}
		if _, _, err := src.Size(t.Context()); err != nil {
			return nil, err
		}
		folder, dir := newFolder(t)
		err = src.Fetch(t.Context(), folder)
		return tree(t, dir), err
	}
	ca := pemOf(srv.Certificate())
	got, err := fetch(Credentials{Token: "secret", CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"reco.bin": content}, got); diff != "" || n != 3 {
		t.Errorf("a file whose first download broke: want it complete after 3 requests, got %d: -want, +got:\n%s", n, diff)
	}
	_, err = fetch(Credentials{Token: "wrong", CA: ca})
	if !failure.Is(err, failure.Forbidden) || strings.Contains(err.Error(), "signature") {
		t.Errorf("with a wrong token: want %s without the query, got %v", failure.Forbidden, err)
	}
	_, err = fetch(Credentials{Token: "secret"})
	if !failure.Is(err, failure.Unreachable) || !strings.Contains(failure.LastWords(err), "ca.crt") {
		t.Errorf("without the authority: want %s that names ca.crt, got %v", failure.Unreachable, err)
	}
}
