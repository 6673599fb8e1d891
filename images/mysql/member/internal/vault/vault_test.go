// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// A door is a host that requests reach without a connection.
type door struct {
	t      *testing.T
	folder string
	handle http.Handler
	// who comes, by the name in the certificate; "" for none.
	who string
}

func newDoor(t *testing.T) *door {
	t.Helper()
	d := &door{t: t, folder: filepath.Join(t.TempDir(), "repository"), who: mysqlmember.RepositoryCommonName}
	d.open()
	return d
}

// open the door, again when it was open before: as a pod that was killed.
func (d *door) open() {
	d.t.Helper()
	handle, done, err := Host{Folder: d.folder, Volume: filepath.Dir(d.folder)}.handler()
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(done)
	d.handle = handle
}

// do a request, with headers in pairs, and return status and content of the answer.
func (d *door) do(method, path, body string, headers ...string) (int, string) {
	d.t.Helper()
	w := d.answer(method, path, strings.NewReader(body), int64(len(body)), headers...)
	return w.Code, w.Body.String()
}

func (d *door) answer(method, path string, body io.Reader, length int64, headers ...string) *httptest.ResponseRecorder {
	d.t.Helper()
	r := httptest.NewRequest(method, "https://host"+path, body)
	r.ContentLength = length
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.TLS = &tls.ConnectionState{}
	if d.who != "" {
		r.TLS.VerifiedChains = [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: d.who}}}}
	}
	w := httptest.NewRecorder()
	d.handle.ServeHTTP(w, r)
	return w
}

// files on the volume.
func (d *door) files() []string {
	d.t.Helper()
	all := []string{}
	if err := filepath.WalkDir(d.folder, func(file string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(d.folder, file)
			all = append(all, name)
		}
		return err
	}); err != nil {
		d.t.Fatal(err)
	}
	return all
}

// list of keys.
func (d *door) list(query string) (keys []string) {
	d.t.Helper()
	status, body := d.do(http.MethodGet, PathList+"?"+query, "")
	var all []Entry
	if err := json.Unmarshal([]byte(body), &all); err != nil || status != http.StatusOK {
		d.t.Fatalf("the list is %d %s: %v", status, body, err)
	}
	for _, e := range all {
		keys = append(keys, e.Key)
		if folder := strings.HasSuffix(e.Key, "/"); folder != (e.Tag == "") || folder != e.Written.IsZero() {
			d.t.Errorf("the entry is %+v", e)
		}
	}
	return keys
}

func TestObjects(t *testing.T) {
	d := newDoor(t)
	for _, step := range []struct {
		reason, method, key, body string
		headers                   []string
		status                    int
		want                      string
	}{
		{"There is none yet.", http.MethodGet, "demo/a.json", "", nil, 404, "refused: there is no such object\n"},
		{"One that is not there is removed.", http.MethodDelete, "demo/a.json", "", nil, 204, ""},
		{"A condition on one that is not there.", http.MethodPut, "demo/a.json", "x", []string{"If-Match", `"1-2-3"`}, 412, "refused: the object is not as the request wants it\n"},
		{"It is made.", http.MethodPut, "demo/a.json", "one", []string{"If-None-Match", "*"}, 204, ""},
		{"And is there.", http.MethodGet, "demo/a.json", "", nil, 200, "one"},
		{"Not over another one.", http.MethodPut, "demo/a.json", "two", []string{"If-None-Match", "*"}, 412, "refused: the object is not as the request wants it\n"},
		{"So it stays.", http.MethodGet, "demo/a.json", "", nil, 200, "one"},
		{"Without a condition it is replaced.", http.MethodPut, "demo/a.json", "three", nil, 204, ""},
		{"As a whole.", http.MethodGet, "demo/a.json", "", nil, 200, "three"},
		{"A part of it.", http.MethodGet, "demo/a.json", "", []string{"Range", "bytes=1-3"}, 206, "hre"},
		{"A folder is no object.", http.MethodGet, "demo", "", nil, 404, "refused: there is no such object\n"},
		{"Nothing is below an object.", http.MethodGet, "demo/a.json/b", "", nil, 404, "refused: there is no such object\n"},
		{"No object takes the place of a folder.", http.MethodPut, "demo", "x", nil, 400, "refused: no object can have this name\n"},
		{"A folder is not removed.", http.MethodDelete, "demo", "", nil, 204, ""},
		{"So what is in it stays.", http.MethodGet, "demo/a.json", "", nil, 200, "three"},
		{"An empty one is an object.", http.MethodPut, "demo/empty", "", nil, 204, ""},
		{"And is there as well.", http.MethodGet, "demo/empty", "", nil, 200, ""},
		{"It is removed.", http.MethodDelete, "demo/a.json", "", nil, 204, ""},
		{"And gone.", http.MethodGet, "demo/a.json", "", nil, 404, "refused: there is no such object\n"},
	} {
		status, body := d.do(step.method, PathObjects+step.key, step.body, step.headers...)
		if diff := cmp.Diff(fmt.Sprint(step.status, " ", step.want), fmt.Sprint(status, " ", body)); diff != "" {
			t.Errorf("%s\n%s %s: -want, +got:\n%s", step.reason, step.method, step.key, diff)
		}
	}
	if diff := cmp.Diff([]string{"demo/empty"}, d.files()); diff != "" {
		t.Errorf("on the volume is: -want, +got:\n%s", diff)
	}
}

// TestTags: who read an object replaces what it read, and nothing that came later.
func TestTags(t *testing.T) {
	d := newDoor(t)
	seen := map[string]bool{}
	for i := range 20 {
		if status, body := d.do(http.MethodPut, PathObjects+"a", "same"); status != http.StatusNoContent {
			t.Fatalf("put %d: %d %s", i, status, body)
		}
		seen[d.answer(http.MethodGet, PathObjects+"a", http.NoBody, 0).Header().Get("Etag")] = true
	}
	if len(seen) != 20 {
		t.Errorf("20 writes have %d tags", len(seen))
	}
	last := d.answer(http.MethodGet, PathObjects+"a", http.NoBody, 0).Header().Get("Etag")
	var listed []Entry
	_, body := d.do(http.MethodGet, PathList+"?prefix=a", "")
	if err := json.Unmarshal([]byte(body), &listed); err != nil || len(listed) != 1 || listed[0].Tag != last || listed[0].Size != 4 {
		t.Errorf("it is listed as %s, and has the tag %s: %v", body, last, err)
	}
	for tag := range seen {
		want := http.StatusPreconditionFailed
		if tag == last {
			continue
		}
		if status, _ := d.do(http.MethodPut, PathObjects+"a", "later", "If-Match", tag); status != want {
			t.Errorf("an earlier tag: %d", status)
		}
	}
	if status, _ := d.do(http.MethodPut, PathObjects+"a", "later", "If-Match", last); status != http.StatusNoContent {
		t.Errorf("the last tag: %d", status)
	}
}

// TestNames: no name leads out of the folder, or to what is not whole.
func TestNames(t *testing.T) {
	d := newDoor(t)
	outside := filepath.Join(filepath.Dir(d.folder), "outside")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(outside, filepath.Join(d.folder, "link")), os.Symlink(filepath.Dir(outside), filepath.Join(d.folder, "up")),
		os.WriteFile(filepath.Join(d.folder, incoming, "1"), []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"..%2foutside", "%2e%2e/outside", "a/%2e%2e/%2e%2e/outside", "%2fetc%2fpasswd", "link", "up/outside", ".incoming/1", "%2eincoming/1", "a%00b", "a%5c..%5cb", "-a", "a%20b",
		strings.Repeat("a", 202), "",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
			status, body := d.do(method, PathObjects+key, "x")
			if status < 300 && (method != http.MethodDelete || status != http.StatusNoContent) || strings.Contains(body, "secret") || strings.Contains(body, "half") {
				t.Errorf("%s %q: %d %s", method, key, status, body)
			}
		}
	}
	for _, prefix := range []string{"../", "a/../../", "/", ".incoming/", "up/"} {
		if status, body := d.do(http.MethodGet, PathList+"?prefix="+prefix, ""); strings.Contains(body, "outside") || strings.Contains(body, `"key"`) {
			t.Errorf("the list of %q: %d %s", prefix, status, body)
		}
	}
	if raw, err := os.ReadFile(outside); err != nil || string(raw) != "secret" {
		t.Errorf("what is outside is %q: %v", raw, err)
	}
}

// TestHalf: of what did not come as a whole nothing is seen, and nothing stays.
func TestHalf(t *testing.T) {
	d := newDoor(t)
	if status, _ := d.do(http.MethodPut, PathObjects+"log/a", "whole"); status != http.StatusNoContent {
		t.Fatal(status)
	}
	for name, body := range map[string]io.Reader{
		"Short":  strings.NewReader("hal"),
		"Broken": io.MultiReader(strings.NewReader("hal"), failing{}),
	} {
		if res := d.answer(http.MethodPut, PathObjects+"log/a", body, 100); res.Code < 400 {
			t.Errorf("%s: %d", name, res.Code)
		}
		if res := d.answer(http.MethodPut, PathObjects+"log/b", body, 100); res.Code < 400 {
			t.Errorf("%s: %d", name, res.Code)
		}
	}
	if res := d.answer(http.MethodPut, PathObjects+"log/a", strings.NewReader("x"), -1); res.Code != http.StatusBadRequest {
		t.Errorf("of an unknown length: %d", res.Code)
	}
	if diff := cmp.Diff([]string{"log/a"}, d.files()); diff != "" {
		t.Errorf("on the volume is: -want, +got:\n%s", diff)
	}
	if _, body := d.do(http.MethodGet, PathObjects+"log/a", ""); body != "whole" {
		t.Errorf("what was there is %q", body)
	}
	// A pod that is killed leaves what came.
	if err := os.WriteFile(filepath.Join(d.folder, incoming, "7"), []byte("hal"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.open()
	if diff := cmp.Diff([]string{"log/a"}, d.files()); diff != "" {
		t.Errorf("after another start there is: -want, +got:\n%s", diff)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the connection broke") }

// TestFull: the last room is for what makes room.
func TestFull(t *testing.T) {
	free := int64(reserve + 3<<20)
	tr, err := grow(t.TempDir(), func() (int64, error) { return free, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	put := func(key string, size int64) error {
		return tr.put(key, strings.NewReader(strings.Repeat("x", int(size))), size, func(string) bool { return true })
	}
	for _, tc := range []struct {
		reason string
		free   int64
		size   int64
		want   error
	}{
		{"There is room.", reserve + 3<<20, 2 << 20, nil},
		{"It would take of the last room.", reserve + 1<<20, 2 << 20, errFull},
		{"A small object may.", reserve + 1<<20, small, nil},
		{"Also when there is almost none.", small + 1, small, nil},
	} {
		free = tc.free
		if err := put("a", tc.size); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s got %v", tc.reason, err)
		}
	}
	w := httptest.NewRecorder()
	fail(w, errFull)
	if w.Code != http.StatusInsufficientStorage || w.Body.String() != "refused: the volume is full\n" {
		t.Errorf("it is answered with %d %s", w.Code, w.Body)
	}
}

// TestWho: one certificate opens all, and no other one anything.
func TestWho(t *testing.T) {
	d := newDoor(t)
	for _, who := range []string{"", mysqlmember.BackupCommonName, mysqlmember.MemberCommonName, mysqlmember.RepositoryHostCommonName} {
		d.who = who
		for _, r := range []string{"GET /usage", "GET /list", "GET /objects/a", "PUT /objects/a", "DELETE /objects/a", "POST /copies/a/config", "GET /copies/a/keys/"} {
			method, path, _ := strings.Cut(r, " ")
			if status, body := d.do(method, path, "x"); status != http.StatusForbidden {
				t.Errorf("%s by %q: %d %s", r, who, status, body)
			}
		}
	}
	d.who = mysqlmember.RepositoryCommonName
	var u struct {
		Percent int   `json:"percent"`
		Size    int64 `json:"size"`
	}
	if _, body := d.do(http.MethodGet, "/usage", ""); json.Unmarshal([]byte(body), &u) != nil || u.Size == 0 || u.Percent > 100 {
		t.Errorf("the usage is %s", body)
	}
	if len(d.files()) != 0 {
		t.Errorf("on the volume is %q", d.files())
	}
}

// TestLists: as those of a bucket, in which there are no folders.
func TestLists(t *testing.T) {
	d := newDoor(t)
	for _, key := range []string{"a/log/s/1/binlog.1", "a/log/s/1/index/0.json", "a/log/s/2/binlog.1", "a/log/note", "a/logs/x", "b"} {
		if status, body := d.do(http.MethodPut, PathObjects+key, "x"); status != http.StatusNoContent {
			t.Fatalf("%s: %d %s", key, status, body)
		}
	}
	// A program that was killed leaves an empty folder.
	if err := os.MkdirAll(filepath.Join(d.folder, "a/log/empty/folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason, query string
		want          []string
	}{
		{"All.", "", []string{"a/log/note", "a/log/s/1/binlog.1", "a/log/s/1/index/0.json", "a/log/s/2/binlog.1", "a/logs/x", "b"}},
		{"A folder.", "prefix=a/log/", []string{"a/log/note", "a/log/s/1/binlog.1", "a/log/s/1/index/0.json", "a/log/s/2/binlog.1"}},
		{"A prefix ends in a name.", "prefix=a/log", []string{"a/log/note", "a/log/s/1/binlog.1", "a/log/s/1/index/0.json", "a/log/s/2/binlog.1", "a/logs/x"}},
		{"An object.", "prefix=a/log/note", []string{"a/log/note"}},
		{"What is right below, and no empty folder.", "prefix=a/log/&shallow=true", []string{"a/log/note", "a/log/s/"}},
		{"Right below all.", "shallow=true", []string{"a/", "b"}},
		{"A folder that is not there.", "prefix=c/d/", nil},
		{"A folder that is an object.", "prefix=b/", nil},
	} {
		if diff := cmp.Diff(tc.want, d.list(tc.query)); diff != "" {
			t.Errorf("%s\n%q: -want, +got:\n%s", tc.reason, tc.query, diff)
		}
	}
	for _, key := range []string{"a/log/s/1/binlog.1", "a/log/s/1/index/0.json", "a/log/s/2/binlog.1"} {
		d.do(http.MethodDelete, PathObjects+key, "")
	}
	if _, err := os.Stat(filepath.Join(d.folder, "a/log/s")); err == nil {
		t.Error("an empty folder stays")
	}
}

// TestCopies: restic's own protocol, and its own layout on the volume.
func TestCopies(t *testing.T) {
	d := newDoor(t)
	one, two := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	const at = PathCopies + "demo/orders/copy/orders-1/"
	for _, step := range []struct {
		reason, method, path, body string
		status                     int
		want                       string
	}{
		{"It is begun.", http.MethodPost, at + "?create=true", "", 200, ""},
		{"It is none before it has its configuration.", http.MethodHead, at + "config", "", 404, ""},
		{"Nothing is in it.", http.MethodGet, at + "data/", "", 200, "[]"},
		{"The configuration is written.", http.MethodPost, at + "config", "key", 200, ""},
		{"Once.", http.MethodPost, at + "config", "another", 403, "refused: the object is not as the request wants it\n"},
		{"It stays.", http.MethodGet, at + "config", "", 200, "key"},
		{"A pack is written.", http.MethodPost, at + "data/" + one, "pack", 200, ""},
		{"And again, after an answer that was lost.", http.MethodPost, at + "data/" + one, "pack", 200, ""},
		{"A lock is written.", http.MethodPost, at + "locks/" + two, "lock", 200, ""},
		{"Lists have sizes.", http.MethodGet, at + "data/", "", 200, `[{"name":"` + one + `","size":4}]`},
		{"Of each kind.", http.MethodGet, at + "locks/", "", 200, `[{"name":"` + two + `","size":4}]`},
		{"It is read.", http.MethodGet, at + "data/" + one, "", 200, "pack"},
		{"A lock is removed.", http.MethodDelete, at + "locks/" + two, "", 200, ""},
		{"Once.", http.MethodDelete, at + "locks/" + two, "", 404, "refused: there is no such object\n"},
		{"No other kinds.", http.MethodPost, at + "other/" + one, "x", 400, "refused: no object can have this name\n"},
		{"No other names.", http.MethodPost, at + "data/short", "x", 400, "refused: no object can have this name\n"},
		{"No way out.", http.MethodGet, PathCopies + "a%2f..%2f..%2fconfig", "", 400, "refused: no object can have this name\n"},
		{"No way out of a list.", http.MethodGet, PathCopies + "a%2f..%2f..%2fdata/", "", 400, "refused: no object can have this name\n"},
		{"A kind is not removed.", http.MethodDelete, at + "data/", "", 405, "refused: no object can have this name\n"},
	} {
		status, body := d.do(step.method, step.path, step.body)
		if step.method == http.MethodHead {
			body = ""
		}
		if diff := cmp.Diff(fmt.Sprint(step.status, " ", step.want), fmt.Sprint(status, " ", body)); diff != "" {
			t.Errorf("%s\n%s %s: -want, +got:\n%s", step.reason, step.method, step.path, diff)
		}
	}
	res := d.answer(http.MethodGet, at+"data/"+one, http.NoBody, 0, "Range", "bytes=2-3")
	if raw := res.Body.String(); res.Code != http.StatusPartialContent || raw != "ck" {
		t.Errorf("a part of a pack is %d %q", res.Code, raw)
	}
	if res := d.answer(http.MethodGet, at+"data/", http.NoBody, 0); res.Header().Get("Content-Type") != listing {
		t.Errorf("a list has the type %q", res.Header().Get("Content-Type"))
	}
	want := []string{"demo/orders/copy/orders-1/config", "demo/orders/copy/orders-1/data/ab/" + one}
	if diff := cmp.Diff(want, d.files()); diff != "" {
		t.Errorf("on the volume is: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, d.list("prefix=demo/orders/copy/")); diff != "" {
		t.Errorf("objects are: -want, +got:\n%s", diff)
	}
}
