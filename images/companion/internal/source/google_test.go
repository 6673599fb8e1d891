// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"hash/crc32"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
)

// theGoogle answers like Cloud Storage's JSON API, with one object a page, and hands out tokens.
type theGoogle struct {
	flaky

	objects map[string]string
	// sent in place of the content of objects.
	sent map[string]string
	// closed buckets need a token; blind users may get and not list.
	closed, blind bool
	// refuses the key of the service account.
	refuses bool
	busy    int
	url     string
}

func (g *theGoogle) says(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	reply(w, map[string]any{"error": map[string]any{"code": status, "message": text}})
}

func (g *theGoogle) object(name string) map[string]any {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, _ = sum.Write([]byte(g.objects[name]))
	return map[string]any{
		"name": name, "size": strconv.Itoa(len(g.objects[name])), "generation": "17",
		"crc32c": base64.StdEncoding.EncodeToString(sum.Sum(nil)),
	}
}

func (g *theGoogle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		if g.refuses {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error": "invalid_grant", "error_description": "Invalid JWT Signature."}`))
			return
		}
		_ = r.ParseForm()
		if r.Form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || r.Form.Get("assertion") == "" {
			g.says(w, http.StatusBadRequest, "no assertion")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "ya29.secret", "token_type": "Bearer", "expires_in": 3599}`))
		return
	}
	if g.busy > 0 {
		g.busy--
		w.Header().Set("Retry-After", "1")
		g.says(w, http.StatusTooManyRequests, "slow down")
		return
	}
	const bucket = "/storage/v1/b/models/o"
	path := r.URL.EscapedPath()
	list := path == bucket
	switch {
	case !strings.HasPrefix(path, bucket):
		g.says(w, http.StatusNotFound, "The specified bucket does not exist.")
		return
	case g.closed && r.Header.Get("Authorization") == "":
		g.says(w, http.StatusUnauthorized, "Anonymous caller does not have storage.objects.list access")
		return
	case g.blind && list:
		g.says(w, http.StatusForbidden, "no storage.objects.list access")
		return
	}
	if list {
		names := slices.Sorted(maps.Keys(g.objects))
		names = slices.DeleteFunc(names, func(n string) bool {
			return !strings.HasPrefix(n, r.URL.Query().Get("prefix")) || n <= r.URL.Query().Get("pageToken")
		})
		answer := map[string]any{"kind": "storage#objects"}
		if len(names) > 0 {
			answer["items"] = []any{g.object(names[0])}
		}
		if len(names) > 1 {
			answer["nextPageToken"] = names[0]
		}
		reply(w, answer)
		return
	}
	// The name of an object is one step, with its slashes escaped.
	name := strings.ReplaceAll(strings.TrimPrefix(path, bucket+"/"), "%2F", "/")
	content, ok := g.objects[name]
	switch {
	case !ok || strings.Contains(strings.TrimPrefix(path, bucket+"/"), "/"):
		g.says(w, http.StatusNotFound, "No such object: models/"+name)
	case r.URL.Query().Get("alt") != "media":
		reply(w, g.object(name))
	case r.URL.Query().Get("generation") != "17" || r.Header.Get("Accept-Encoding") != "gzip":
		g.says(w, http.StatusBadRequest, "a generation as it is stored was to be asked for")
	default:
		if other, ok := g.sent[name]; ok {
			content = other
		}
		g.send(w, r, content)
	}
}

func TestGoogle(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	account := func(g *theGoogle) string {
		raw, err := json.Marshal(map[string]string{
			"type": "service_account", "client_email": "reco@project.iam.gserviceaccount.com", "private_key_id": "1", "private_key": private,
			"token_uri": g.url + "/token",
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	large := strings.Repeat("weights ", 10_000)
	cases := map[string]struct {
		reason string
		uri    string
		change func(g *theGoogle)
		login  func(g *theGoogle) Credentials
		want   map[string]string
		failed failure.Reason
		words  string
	}{
		"Public": {
			reason: "Everything below the prefix, of both pages, but folders of consoles.", uri: "gs://models/reco/7",
			want: map[string]string{"model.bin": large, "config/a.json": "{}"},
		},
		"One": {reason: "One object is a model, too.", uri: "gs://models/reco/7/model.bin", want: map[string]string{"model.bin": large}},
		"Account": {
			reason: "The key of a service account opens a bucket.", uri: "gs://models/reco/7",
			change: func(g *theGoogle) { g.closed = true },
			login:  func(g *theGoogle) Credentials { return Credentials{ServiceAccountKey: account(g)} },
			want:   map[string]string{"model.bin": large, "config/a.json": "{}"},
		},
		"Blind": {
			reason: "Who may not list may get.", uri: "gs://models/reco/7/model.bin", change: func(g *theGoogle) { g.blind = true },
			want: map[string]string{"model.bin": large},
		},
		"Busy": {
			reason: "Google says when to come back.", uri: "gs://models/reco/7/config", change: func(g *theGoogle) { g.busy = 1 },
			want: map[string]string{"a.json": "{}"},
		},
		"Anonymous": {
			reason: "Nobody may not.", uri: "gs://models/reco/7", change: func(g *theGoogle) { g.closed = true },
			failed: failure.Forbidden, words: "Anonymous caller",
		},
		"BlindFolder": {
			reason: "A list is needed for a folder.", uri: "gs://models/reco/7", change: func(g *theGoogle) { g.blind = true },
			failed: failure.Forbidden, words: "storage.objects.list",
		},
		"Refused": {
			reason: "A key that was deleted.", uri: "gs://models/reco/7", change: func(g *theGoogle) { g.refuses = true },
			login:  func(g *theGoogle) Credentials { return Credentials{ServiceAccountKey: account(g)} },
			failed: failure.Forbidden, words: "invalid_grant",
		},
		"NoKey": {
			reason: "What is wrong is told, and nothing of what is in it.", uri: "gs://models/reco/7",
			login:  func(*theGoogle) Credentials { return Credentials{ServiceAccountKey: `{"type": "secret"}`} },
			failed: failure.Invalid, words: "serviceAccountKey",
		},
		"NoBucket": {reason: "The bucket is told.", uri: "gs://none/reco", failed: failure.NotFound, words: `bucket "none"`},
		"NoObject": {reason: "Both are told.", uri: "gs://models/none", failed: failure.NotFound, words: `bucket "models" has no object "none"`},
		"Replaced": {
			reason: "Another content has another checksum.", uri: "gs://models/reco/7/model.bin",
			change: func(g *theGoogle) {
				g.sent = map[string]string{"reco/7/model.bin": strings.Repeat("weights_", 10_000)}
			},
			failed: failure.DigestMismatch, words: "CRC32C",
		},
		"Dots": {
			reason: "It would lie elsewhere.", uri: "gs://models/bad", failed: failure.Invalid, words: "cannot be a file",
			change: func(g *theGoogle) { g.objects["bad/../x"] = "x" },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &theGoogle{objects: map[string]string{
				"reco/7/": "", "reco/7/model.bin": large, "reco/7/config/a.json": "{}", "reco/70": "another model",
			}}
			g.url = newServer(t, g.ServeHTTP).URL
			if tc.change != nil {
				tc.change(g)
			}
			o := Options{Endpoint: g.url}
			if tc.login != nil {
				o.Credentials = tc.login(g)
			}
			got, err := fetchAll(t, tc.uri, o)
			if tc.failed != "" {
				if !failure.Is(err, tc.failed) || !strings.Contains(err.Error(), tc.words) {
					t.Fatalf("%s\nwant %s with %q, got %v", tc.reason, tc.failed, tc.words, err)
				}
				if strings.Contains(failure.LastWords(err), "PRIVATE") || strings.Contains(failure.LastWords(err), "ya29") {
					t.Errorf("%s\na secret is told: %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGoogleInteroperability signs as S3 does, without the header that Google changes before it compares the signature.
func TestGoogleInteroperability(t *testing.T) {
	var signed []string
	srv := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		authorization := r.Header.Get("Authorization")
		signed = append(signed, authorization)
		if !strings.Contains(authorization, "Credential=GOOG1/") || !strings.Contains(authorization, "/auto/s3/") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if r.URL.Query().Get("list-type") == "2" {
			_, _ = w.Write([]byte(`<ListBucketResult><Contents><Key>reco/m.bin</Key><Size>5</Size><ETag>"a"</ETag></Contents></ListBucketResult>`))
			return
		}
		_, _ = w.Write([]byte("model"))
	})
	got, err := fetchAll(t, "gs://models/reco", Options{Endpoint: srv.URL, Credentials: Credentials{AccessKeyID: "GOOG1", SecretAccessKey: "secret"}})
	if err != nil || got["m.bin"] != "model" {
		t.Fatalf("want the model, got %v, %v", got, err)
	}
	for _, s := range signed {
		if strings.Contains(strings.ToLower(s), "accept-encoding") {
			t.Errorf("a signature has the header Accept-Encoding: %s", s)
		}
	}
}
