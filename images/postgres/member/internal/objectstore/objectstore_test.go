// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/images/member/web"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// serve objects as an S3 server does, and return its bucket.
func serve(t *testing.T, handle http.HandlerFunc) *Store {
	t.Helper()
	s := httptest.NewTLSServer(handle)
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(pgbackrest.Repository{Host: u.Hostname(), Port: u.Port(), Region: "eu-1", Bucket: "backups", Key: "id", Secret: "key", Token: "token", CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadAndWrite(t *testing.T) {
	var kept []byte
	b := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/backups/demo/orders/x.json" || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=id/") ||
			r.Header.Get("X-Amz-Security-Token") != "token" {
			t.Errorf("%s %s is asked with %v", r.Method, r.URL.Path, r.Header)
		}
		switch {
		case r.Method == http.MethodPut:
			kept, _ = io.ReadAll(r.Body)
		case kept == nil:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
		default:
			_, _ = w.Write(kept)
		}
	})
	var got map[string]int
	if found, err := b.Read(context.Background(), "/demo/orders/x.json", &got); found || err != nil {
		t.Errorf("an object that is not there: %t, %v", found, err)
	}
	if err := b.Write(context.Background(), "/demo/orders/x.json", map[string]int{"a": 1}); err != nil {
		t.Fatal(err)
	}
	if found, err := b.Read(context.Background(), "/demo/orders/x.json", &got); !found || err != nil || got["a"] != 1 {
		t.Errorf("what was written is %v: %t, %v", got, found, err)
	}
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		status int
		body   string
		want   string
	}{
		"Denied":   {"A key that does not fit is told as such.", http.StatusForbidden, "<Error><Code>AccessDenied</Code></Error>", "AccessDenied (403)"},
		"NoBucket": {"No bucket is not an empty one.", http.StatusNotFound, "<Error><Code>NoSuchBucket</Code></Error>", "NoSuchBucket (404)"},
		"Proxy":    {"What is between answers in its own way.", http.StatusBadGateway, "<html>", "502 Bad Gateway"},
		"NoJSON":   {"Half an object is none.", http.StatusOK, `{"a":`, "cannot understand"},
		"Large":    {"Nobody makes the member read without end.", http.StatusOK, strings.Repeat("x", web.MaxAnswer+1), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			b := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			var into any
			if found, err := b.Read(context.Background(), "x", &into); found || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %t, %v, want an error with %q", tc.reason, found, err, tc.want)
			}
		})
	}
}
