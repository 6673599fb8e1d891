// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"crypto/md5"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/images/member/bucket"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

const testGroup, testServer = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "11111111-71ca-11e1-9e33-c80aa9429562"

// A shelf is a bucket in memory. It answers as much of the protocol as a Repository asks for.
type shelf struct {
	t  *testing.T
	mu sync.Mutex
	// content and time of each object, by key.
	objects map[string]string
	written map[string]time.Time
	// before a request is answered.
	before func(method, key string)
	// wrong is by how much the date of answers is.
	wrong time.Duration
}

// newShelf with a Repository of the stanza orders-1 in it.
func newShelf(t *testing.T) (*shelf, *Repository) {
	t.Helper()
	s := &shelf{t: t, objects: map[string]string{}, written: map[string]time.Time{}, before: func(string, string) {}}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	at, err := netip.ParseAddrPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := openBucket(bucket.Connection{
		Host: at.Addr().String(), Port: strconv.Itoa(int(at.Port())), Region: "x", Bucket: "b", Key: "k", Secret: "s", CA: authority,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, &Repository{
		place: Place{Path: "/o", Stanza: "orders-1", Scratch: t.TempDir()}, objects: objects,
		read: map[string]readIndex{}, taken: map[entry]manifest{}, seal: &seal{},
	}
}

func tag(content string) string { return fmt.Sprintf(`"%x"`, md5.Sum([]byte(content))) }

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/b"), "/")
	s.before(r.Method, key)
	w.Header().Set("Date", time.Now().Add(s.wrong).UTC().Format(http.TimeFormat))
	s.mu.Lock()
	defer s.mu.Unlock()
	content, there := s.objects[key]
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
	}
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	switch {
	case err != nil, time.Since(signed).Abs() > 15*time.Minute:
		refuse(http.StatusForbidden, "RequestTimeTooSkewed")
	case r.Method == http.MethodGet && key == "":
		s.list(w, r.URL.Query().Get("prefix"), r.URL.Query().Get("delimiter"))
	case r.Method == http.MethodGet && !there:
		refuse(http.StatusNotFound, "NoSuchKey")
	case r.Method == http.MethodGet:
		w.Header().Set("ETag", tag(content))
		_, _ = io.WriteString(w, content)
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case r.Header.Get("If-None-Match") != "" && there, r.Header.Get("If-Match") != "" && (!there || r.Header.Get("If-Match") != tag(content)):
		refuse(http.StatusPreconditionFailed, "PreconditionFailed")
	default:
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			s.t.Error(err)
		}
		s.objects[key], s.written[key] = string(raw), time.Now()
	}
}

func (s *shelf) list(w io.Writer, prefix, delimiter string) {
	type object struct {
		Key          string    `xml:"Key"`
		ETag         string    `xml:"ETag"`
		LastModified time.Time `xml:"LastModified"`
	}
	type folder struct {
		Prefix string `xml:"Prefix"`
	}
	var out struct {
		XMLName        xml.Name `xml:"ListBucketResult"`
		Contents       []object `xml:"Contents"`
		CommonPrefixes []folder `xml:"CommonPrefixes"`
	}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		rest, below := strings.CutPrefix(key, prefix)
		if !below {
			continue
		}
		if i := strings.Index(rest, "/"); delimiter != "" && i >= 0 {
			if f := (folder{prefix + rest[:i+1]}); !slices.Contains(out.CommonPrefixes, f) {
				out.CommonPrefixes = append(out.CommonPrefixes, f)
			}
			continue
		}
		out.Contents = append(out.Contents, object{key, tag(s.objects[key]), s.written[key].UTC().Truncate(time.Second)})
	}
	if err := xml.NewEncoder(w).Encode(out); err != nil {
		s.t.Error(err)
	}
}

// keys below a prefix.
func (s *shelf) keys(prefix string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if rest, below := strings.CutPrefix(key, prefix); below {
			all = append(all, rest)
		}
	}
	return all
}

func (s *shelf) put(key string, value any) {
	s.t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key], s.written[key] = string(raw), time.Now()
}

func numbered(t *testing.T, numbers string) gtid.Set {
	t.Helper()
	set, err := gtid.Parse(testGroup + ":" + numbers)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// saveLog of a server, with transactions that a backup of 1 to 100 has.
func saveLog(t *testing.T, r *Repository, name string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.SaveLog(t.Context(), file, Log{Server: testServer, File: name, Set: numbered(t, "1-10")}); err != nil {
		t.Fatal(err)
	}
}

// TestExpireLogs: an index that a server adds to stays.
func TestExpireLogs(t *testing.T) {
	const folder = "o/log/orders-1/" + testServer + "/index/"
	backups := []manifest{{Backup: Backup{Set: numbered(t, "1-100")}}}
	for name, tc := range map[string]struct {
		reason string
		saved  []string
		added  string
		after  time.Duration
		want   []string
	}{
		"Old":   {"Nothing was added for days.", []string{"binlog.000001", "binlog-1790000000.000001"}, "", 2 * day, nil},
		"Young": {"A server may add to the last one of each base name.", []string{"binlog.000001", "binlog.000064", "binlog-1790000000.000001"}, "", time.Hour, []string{"binlog-1.json", "binlog-1790000000-0.json"}},
		"Added": {"An idle leader begins to add at this moment.", []string{"binlog.000001"}, "binlog.000002", 2 * day, []string{"binlog-0.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := newShelf(t)
			for _, one := range tc.saved {
				saveLog(t, r, one)
			}
			s.before = func(method, key string) {
				if added := tc.added; added != "" && method == http.MethodGet && strings.HasSuffix(key, ".json") {
					tc.added = ""
					saveLog(t, r, added)
				}
			}
			if err := r.expireLogs(t.Context(), "orders-1", backups, time.Now().Add(tc.after)); err != nil {
				t.Fatal(err)
			}
			if got := s.keys(folder); !slices.Equal(got, tc.want) {
				t.Errorf("%s The indexes %q are left, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestChangeObject: two programs that change an object at the same moment do not undo each other's change.
func TestChangeObject(t *testing.T) {
	s, r := newShelf(t)
	add := func(name string) error {
		var all []string
		return r.ChangeObject(t.Context(), "restore-points", &all, func() error { all = append(all, name); return nil })
	}
	for _, name := range []string{"v1", "v3"} {
		changed := false
		s.before = func(method, _ string) {
			if method == http.MethodPut && !changed {
				changed = true
				if err := add("of another before " + name); err != nil {
					t.Error(err)
				}
			}
		}
		if err := add(name); !errors.Is(err, ErrChanged) {
			t.Errorf("another program has written it meanwhile: %v", err)
		}
		if err := add(name); err != nil {
			t.Error(err)
		}
	}
	var all []string
	found, err := r.ReadObject(t.Context(), "restore-points", &all)
	if want := []string{"of another before v1", "v1", "of another before v3", "v3"}; err != nil || !found || !slices.Equal(all, want) {
		t.Errorf("there is %q, want %q: %v", all, want, err)
	}
}

// TestWrongDate is about answers that are two hours old, to go by their headers: nobody does.
func TestWrongDate(t *testing.T) {
	s, r := newShelf(t)
	s.wrong = -2 * time.Hour
	for range 3 {
		if err := r.WriteObject(t.Context(), "results", "passed"); err != nil {
			t.Fatal(err)
		}
		var got string
		if found, err := r.ReadObject(t.Context(), "results", &got); !found || err != nil || got != "passed" {
			t.Fatalf("found %t, %q, %v", found, got, err)
		}
	}
}
