// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/images/member/bucket"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// A memory is a bucket whose objects are here, by key.
type memory struct {
	mu      sync.Mutex
	objects map[string]string
}

func (m *memory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/b/")
	body, found := m.objects[key]
	switch {
	case r.URL.Query().Get("list-type") == "2":
		type object struct {
			Key  string `xml:"Key"`
			ETag string `xml:"ETag"`
		}
		var out struct {
			XMLName  xml.Name `xml:"ListBucketResult"`
			Contents []object `xml:"Contents"`
		}
		for key, body := range m.objects {
			if strings.HasPrefix(key, r.URL.Query().Get("prefix")) {
				out.Contents = append(out.Contents, object{Key: key, ETag: body})
			}
		}
		_ = xml.NewEncoder(w).Encode(out)
	case r.Method == http.MethodPut && found && r.Header.Get("If-None-Match") == "*":
		http.Error(w, "<Error><Code>PreconditionFailed</Code></Error>", http.StatusPreconditionFailed)
	case r.Method == http.MethodPut:
		raw, _ := io.ReadAll(r.Body)
		m.objects[key] = string(raw)
	case r.Method == http.MethodDelete:
		delete(m.objects, key)
	case !found:
		http.Error(w, "<Error><Code>NoSuchKey</Code></Error>", http.StatusNotFound)
	default:
		_, _ = io.WriteString(w, body)
	}
}

// inMemory is a repository of a stanza in a bucket with these objects.
func inMemory(t *testing.T, stanza string, there map[string]string) *Repository {
	t.Helper()
	srv := httptest.NewTLSServer(&memory{objects: there})
	t.Cleanup(srv.Close)
	at, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := &Repository{place: Place{Path: "/demo", Stanza: stanza}, read: map[string]readIndex{}, taken: map[entry]manifest{}}
	r.connection = bucket.Connection{Host: at.Hostname(), Port: at.Port(), Bucket: "b", Region: "r", Key: "k", Secret: "s"}
	if r.objects, err = openBucket(r.connection); err != nil {
		t.Fatal(err)
	}
	b, ok := r.objects.store.(*inBucket)
	if !ok {
		t.Fatal("it is no bucket")
	}
	options := b.api.Options()
	options.HTTPClient = srv.Client()
	b.api = s3.New(options)
	return r
}

// TestClaim: a group that began with nothing has no transaction of the first one, and its backups are of the same Database.
func TestClaim(t *testing.T) {
	const first, next, other = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4f22fa47-71ca-11e1-9e33-c80aa9429562", "5a33fa47-71ca-11e1-9e33-c80aa9429562"
	ctx := t.Context()
	there := map[string]string{}
	r := inMemory(t, "orders", there)
	set := func(of string) gtid.Set {
		s, err := gtid.Parse(of + ":1-9")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	takes := func(reason string, b Backup, want bool) {
		t.Helper()
		if err := r.claimFor(ctx, b); (err == nil) != want || err != nil && !errors.Is(err, ErrForeign) {
			t.Errorf("%s: got %v", reason, err)
		}
	}
	for range 2 {
		if err := r.Claim(ctx, first, first); err != nil {
			t.Fatal(err)
		}
	}
	takes("The first group has the stanza.", Backup{Group: first}, true)
	takes("Nobody knows the next one yet.", Backup{Group: next, Set: set(next)}, false)
	for range 2 {
		if err := r.Claim(ctx, first, next); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := there["demo/stanza/orders.json"], `{"group":"`+first+`","later":["`+next+`"]}`; got != want {
		t.Errorf("the stanza is of %s, want %s", got, want)
	}
	takes("Its leader said that the next one took the place of the first.", Backup{Group: next, Set: set(next)}, true)
	takes("What has transactions of the first one is of it.", Backup{Group: other, Set: set(first).Union(set(other))}, true)
	takes("Another one is another Database.", Backup{Group: other, Set: set(other)}, false)
	if err := r.Claim(ctx, other, next); !errors.Is(err, ErrForeign) {
		t.Errorf("another Database claims the stanza: %v", err)
	}
}

// TestUnreadable: one object that cannot be understood hides no other backup, and is never taken for an empty bucket.
func TestUnreadable(t *testing.T) {
	ctx := t.Context()
	there := map[string]string{
		"demo/backup/orders/a.json": `{"label":"a","ended":"2026-11-26T03:00:00Z"}`, "demo/backup/orders/b.json": `{"label":"b","en`,
		"demo/backup/orders/c.json": `{"label":"c","ended":"2026-11-26T04:00:00Z"}`,
	}
	r := inMemory(t, "orders", there)
	all, err := r.Backups(ctx)
	if err != nil || len(all) != 2 || all[0].Label != "a" || all[1].Label != "c" {
		t.Errorf("the backups are %v: %v", all, err)
	}
	if err := r.Unreadable(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "demo/backup/orders/b.json") {
		t.Errorf("what was left out: %v", err)
	}
	if err := r.Expire(ctx, Retention{Full: 1}, time.Now()); !errors.Is(err, ErrDamaged) || len(there) != 3 {
		t.Errorf("%d objects are left: %v", len(there), err)
	}
	delete(there, "demo/backup/orders/a.json")
	delete(there, "demo/backup/orders/c.json")
	if all, err := r.Backups(ctx); !errors.Is(err, ErrDamaged) {
		t.Errorf("there is none, and the backups are %v: %v", all, err)
	}
	there["demo/backup/orders/b.json"] = `{"label":"b","ended":"2026-11-26T03:30:00Z"}`
	if all, err := r.Backups(ctx); err != nil || len(all) != 1 || r.Unreadable() != nil {
		t.Errorf("it was brought back, and the backups are %v: %v, %v", all, err, r.Unreadable())
	}
}
