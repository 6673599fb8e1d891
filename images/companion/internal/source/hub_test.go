// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
)

const (
	hubCommit = "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"
	hubToken  = "hf_secret"
)

// theHub answers like Hugging Face's: it lists two files a page, and redirects to another server for large ones.
type theHub struct {
	flaky

	files, large map[string]string
	// broken is what the other server has in place of large files.
	broken map[string]string
	cdn    string
	// busy answers are still to come.
	busy int
	// gated repositories need a token.
	gated bool
	url   string
}

func (h *theHub) entries() []map[string]any {
	all := []map[string]any{{"type": "directory", "oid": strings.Repeat("0", 40), "size": 0, "path": "onnx"}}
	for _, name := range []string{"config.json", "onnx/model.onnx", "model.safetensors"} {
		if content, ok := h.files[name]; ok {
			sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
			all = append(all, map[string]any{"type": "file", "oid": hex.EncodeToString(sum[:]), "size": len(content), "path": name})
		}
		if content, ok := h.large[name]; ok {
			all = append(all, map[string]any{
				"type": "file", "oid": strings.Repeat("1", 40), "size": len(content), "path": name,
				"lfs": map[string]any{"oid": fmt.Sprintf("%x", sha256.Sum256([]byte(content))), "size": len(content), "pointerSize": 134},
			})
		}
	}
	return all
}

func (h *theHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	says := func(status int, code, text string) {
		w.Header().Set("X-Error-Code", code)
		w.WriteHeader(status)
		reply(w, map[string]any{"error": text})
	}
	switch token := r.Header.Get("Authorization"); {
	case token != "" && token != "Bearer "+hubToken:
		says(http.StatusUnauthorized, "", "Invalid credentials in Authorization header")
		return
	case h.gated && token == "":
		says(http.StatusForbidden, "GatedRepo", "Access to model org/repo is restricted")
		return
	}
	if h.busy > 0 {
		h.busy--
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	switch path := r.URL.EscapedPath(); {
	case path == "/api/models/org/repo/revision/main", path == "/api/models/org/repo/revision/refs%2Fpr%2F3":
		reply(w, map[string]any{"sha": hubCommit, "id": "org/repo"})
	case path == "/api/models/org/repo/tree/"+hubCommit:
		all := h.entries()
		if r.URL.Query().Get("cursor") == "" {
			w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=true&cursor=2>; rel="next"`, h.url, path))
			all = all[:2]
		} else {
			all = all[2:]
		}
		reply(w, all)
	case strings.HasPrefix(path, "/org/repo/resolve/"+hubCommit+"/"):
		name := strings.TrimPrefix(path, "/org/repo/resolve/"+hubCommit+"/")
		if _, ok := h.large[name]; ok {
			http.Redirect(w, r, h.cdn+"/"+name+"?Signature=x", http.StatusFound)
			return
		}
		if content, ok := h.broken[name]; ok {
			h.send(w, r, content)
			return
		}
		h.send(w, r, h.files[name])
	case strings.HasPrefix(path, "/api/models/org/repo/revision/"):
		says(http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+path[strings.LastIndexByte(path, '/')+1:])
	default:
		says(http.StatusUnauthorized, "RepoNotFound", "Repository not found")
	}
}

func newHubServer(t *testing.T) *theHub {
	t.Helper()
	h := &theHub{
		files: map[string]string{"config.json": `{"a": 1}`},
		large: map[string]string{"onnx/model.onnx": strings.Repeat("onnx ", 1000), "model.safetensors": strings.Repeat("weights ", 10_000)},
	}
	var f flaky
	cdn := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token of the hub is sent to another server")
		}
		name := r.URL.Path[1:]
		if content, ok := h.broken[name]; ok {
			f.send(w, r, content)
			return
		}
		f.send(w, r, h.large[name])
	})
	h.cdn = strings.Replace(cdn.URL, "127.0.0.1", "localhost", 1)
	h.url = newServer(t, h.ServeHTTP).URL
	return h
}

// TestHub downloads from a server that breaks off the first answer for each large file.
func TestHub(t *testing.T) {
	cases := map[string]struct {
		reason string
		uri    string
		change func(h *theHub)
		token  string
		want   []string
		failed failure.Reason
		words  string
	}{
		"All": {
			reason: "Both pages of the list, at the commit of the branch.", uri: "hf://org/repo", token: hubToken,
			want: []string{"config.json", "onnx/model.onnx", "model.safetensors"},
		},
		"Commit": {
			reason: "A commit needs nobody to resolve it.", uri: "hf://org/repo@" + hubCommit,
			want: []string{"config.json", "onnx/model.onnx", "model.safetensors"},
		},
		"Pull":   {reason: "The hub's own revisions have slashes.", uri: "hf://org/repo@refs/pr/3/config.json", want: []string{"config.json"}},
		"Folder": {reason: "A part of the repository is the model.", uri: "hf://org/repo@main/onnx", want: []string{"model.onnx"}},
		"File":   {reason: "So is a file.", uri: "hf://org/repo/model.safetensors", want: []string{"model.safetensors"}},
		"Busy": {
			reason: "The hub says when to come back.", uri: "hf://org/repo/config.json",
			change: func(h *theHub) { h.busy = 2 }, want: []string{"config.json"},
		},
		"AlwaysBusy": {
			reason: "But not for ever.", uri: "hf://org/repo", change: func(h *theHub) { h.busy = 1000 },
			failed: failure.Unreachable, words: "429",
		},
		"NoRevision": {reason: "The name is told.", uri: "hf://org/repo@none", failed: failure.NotFound, words: `revision "none"`},
		"NoPath":     {reason: "So is the path.", uri: "hf://org/repo/none", failed: failure.NotFound, words: "hf://org/repo/none"},
		"NoRepository": {
			reason: "The hub does not tell whether it is there.", uri: "hf://org/none", failed: failure.Forbidden, words: "Repository not found",
		},
		"Gated": {
			reason: "A license has to be accepted.", uri: "hf://org/repo", change: func(h *theHub) { h.gated = true },
			failed: failure.Forbidden, words: "restricted",
		},
		"GatedWithToken": {
			reason: "Who has done so gets it.", uri: "hf://org/repo/config.json", token: hubToken, change: func(h *theHub) { h.gated = true },
			want: []string{"config.json"},
		},
		"WrongToken": {reason: "The token is not told.", uri: "hf://org/repo", token: "hf_wrong", failed: failure.Forbidden, words: "Invalid credentials"},
		"Replaced": {
			reason: "Another content has another digest.", uri: "hf://org/repo",
			change: func(h *theHub) {
				h.broken = map[string]string{"onnx/model.onnx": strings.Repeat("0nnx ", 1000)}
			},
			failed: failure.DigestMismatch, words: "onnx/model.onnx",
		},
		"Truncated": {
			reason: "What is shorter is not the file.", uri: "hf://org/repo",
			change: func(h *theHub) { h.broken = map[string]string{"onnx/model.onnx": "short"} },
			failed: failure.Invalid, words: "replaced while it was downloaded",
		},
		"SmallReplaced": {
			reason: "Git's checksum is compared for what is not large.", uri: "hf://org/repo/config.json",
			change: func(h *theHub) {
				h.broken = map[string]string{"config.json": `{"a": 2}`}
			},
			failed: failure.DigestMismatch, words: "config.json",
		},
		"Metadata": {
			reason: "No hub sends a pod there.", uri: "hf://org/repo/model.safetensors",
			change: func(h *theHub) { h.cdn = "http://169.254.169.254" },
			failed: failure.Invalid, words: "link-local",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHubServer(t)
			if tc.change != nil {
				tc.change(h)
			}
			got, err := fetchAll(t, tc.uri, Options{Endpoint: h.url, Credentials: Credentials{Token: tc.token}})
			if tc.failed != "" {
				if !failure.Is(err, tc.failed) || !strings.Contains(err.Error(), tc.words) {
					t.Fatalf("%s\nwant %s with %q, got %v", tc.reason, tc.failed, tc.words, err)
				}
				if tc.token != "" && strings.Contains(failure.LastWords(err), tc.token) {
					t.Errorf("%s\nthe token is told: %v", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			want := map[string]string{}
			for _, name := range tc.want {
				from := name
				if name == "model.onnx" {
					from = "onnx/model.onnx"
				}
				want[name] = h.files[from] + h.large[from]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
