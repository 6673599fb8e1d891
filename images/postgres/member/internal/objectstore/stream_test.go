// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// A fragile server ends each connection after some bytes of an object.
type fragile struct {
	content  []byte
	etag     atomic.Value
	after    int
	requests atomic.Int32
}

func (f *fragile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	if r.URL.Path != "/dumps/shop/a b+c.dump" {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
		return
	}
	if want := r.Header.Get("If-Match"); want != "" && want != f.etag.Load() {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	var from, to int
	switch n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); n {
	case 0:
		w.WriteHeader(http.StatusBadRequest)
		return
	case 1:
		to = len(f.content) - 1
	}
	if len(f.content) == 0 {
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return
	}
	to = min(to, len(f.content)-1)
	w.Header().Set("Etag", f.etag.Load().(string))
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(f.content)))
	w.Header().Set("Content-Length", strconv.Itoa(to-from+1))
	w.WriteHeader(http.StatusPartialContent)
	part := f.content[from : to+1]
	if f.after > 0 && len(part) > f.after {
		_, _ = w.Write(part[:f.after])
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(part)
}

// bucketOf a server.
func bucketOf(t *testing.T, h http.Handler) *Bucket {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = nil
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenBucket(pgbackrest.Repository{Host: host, Port: port, Region: "us-east-1", Bucket: "dumps", Key: "k", Secret: "s", CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newFragile(content []byte, after int) *fragile {
	f := &fragile{content: content, after: after}
	f.etag.Store(`"one"`)
	return f
}

// TestStream: an object arrives once and whole, over as many connections as that takes.
func TestStream(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 5000)
	f := newFragile(content, 20_000)
	b := bucketOf(t, f)
	o, head, there, err := b.Head(t.Context(), "shop/a b+c.dump", 12)
	if err != nil || !there {
		t.Fatalf("there: %t, error %v", there, err)
	}
	if diff := cmp.Diff(Object{Key: "shop/a b+c.dump", ETag: `"one"`, Size: 50_000}, o); diff != "" || string(head) != "012345678901" {
		t.Errorf("head %q, -want, +got:\n%s", head, diff)
	}
	s := b.Stream(t.Context(), o)
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, error %v", len(got), err)
	}
	if n := f.requests.Load(); n != 4 {
		t.Errorf("%d requests, want one for the head and three for the whole", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestStreamReplaced: what was replaced is not continued with.
func TestStreamReplaced(t *testing.T) {
	f := newFragile(bytes.Repeat([]byte("0123456789"), 5000), 20_000)
	b := bucketOf(t, f)
	s := b.Stream(t.Context(), Object{Key: "shop/a b+c.dump", ETag: `"one"`, Size: 50_000})
	if _, err := io.ReadFull(s, make([]byte, 10_000)); err != nil {
		t.Fatal(err)
	}
	f.etag.Store(`"two"`)
	if _, err := io.ReadAll(s); err == nil || !strings.Contains(err.Error(), "cannot read shop/a b+c.dump in the bucket: it was replaced while it was read") {
		t.Errorf("error %v", err)
	}
}

func TestHeadOfNothing(t *testing.T) {
	b := bucketOf(t, newFragile(nil, 0))
	if o, head, there, err := b.Head(t.Context(), "shop/a b+c.dump", 12); err != nil || !there || o.Size != 0 || len(head) != 0 {
		t.Errorf("an empty object: %+v, %q, %t, %v", o, head, there, err)
	}
	if _, _, there, err := b.Head(t.Context(), "other", 12); err != nil || there {
		t.Errorf("no object: %t, %v", there, err)
	}
	gone := bucketOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchBucket</Code></Error>")
	}))
	if _, _, _, err := gone.Head(t.Context(), "other", 12); err == nil || !strings.Contains(err.Error(), "the server refuses it: NoSuchBucket (404)") {
		t.Errorf("no bucket: %v", err)
	}
}

// TestStreamEnds: a server that is gone for good ends a read, and so does the end of the context.
func TestStreamEnds(t *testing.T) {
	b := bucketOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	begun := time.Now()
	if _, err := io.ReadAll(b.Stream(t.Context(), Object{Key: "a", Size: 1})); err == nil || !strings.Contains(err.Error(), "the server answers 403 Forbidden") || time.Since(begun) > pause {
		t.Errorf("error %v after %s", err, time.Since(begun))
	}
}

func TestList(t *testing.T) {
	b := bucketOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("list-type") != "2" || q.Get("prefix") != "a b+c/" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if q.Get("continuation-token") == "" {
			_, _ = io.WriteString(w, `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x/y+z=</NextContinuationToken><Contents><Key>a b+c/1</Key><ETag>"e"</ETag><Size>7</Size></Contents></ListBucketResult>`)
			return
		}
		if q.Get("continuation-token") != "x/y+z=" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, `<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a b+c/2</Key><ETag>"f"</ETag><Size>8</Size></Contents></ListBucketResult>`)
	}))
	got, err := b.List(t.Context(), "a b+c/")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Object{{Key: "a b+c/1", ETag: `"e"`, Size: 7}, {Key: "a b+c/2", ETag: `"f"`, Size: 8}}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestEscaped(t *testing.T) {
	for key, want := range map[string]string{"a/b-c_d.e~f": "a/b-c_d.e~f", "a b+c=d&e:f@g": "a%20b%2Bc%3Dd%26e%3Af%40g", "ä": "%C3%A4"} {
		if got := escaped(key); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
	var final *finalError
	if !errors.As(fmt.Errorf("x: %w", &finalError{io.EOF}), &final) {
		t.Error("an error that does not pass is tried again")
	}
}
