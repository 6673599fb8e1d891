// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/transfer"
)

// reply with JSON.
func reply(w http.ResponseWriter, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // Tests reply with what can be written.
	}
	_, _ = w.Write(raw)
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// fetchAll of a model into a folder, as the program does it, in a short time.
func fetchAll(tb testing.TB, uri string, o Options) (map[string]string, error) {
	tb.Helper()
	log := slog.New(slog.DiscardHandler)
	if o.Log == nil {
		o.Log = log
	}
	o.Options = transfer.Options{
		Retry: transfer.Retry{Limit: 4 * time.Second, Log: o.Log}, Parallel: 2, Progress: transfer.NewProgress(tb.Context(), log, time.Hour),
	}
	src, err := New(tb.Context(), uri, o)
	if err != nil {
		return nil, err
	}
	if _, _, err := src.Size(tb.Context()); err != nil {
		return nil, err
	}
	folder, dir := newFolder(tb)
	if err := src.Fetch(tb.Context(), folder); err != nil {
		return nil, err
	}
	return tree(tb, dir), nil
}

// newServer without words on connections that it breaks.
func newServer(tb testing.TB, h http.HandlerFunc) *httptest.Server {
	tb.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	srv.Start()
	tb.Cleanup(srv.Close)
	return srv
}

// A flaky server sends a part of an answer, and ends the connection. It does so for the first answer of each path that has something to
// send.
type flaky struct {
	mu   sync.Mutex
	seen map[string]int
}

// send content, from the offset that the request asks for.
func (f *flaky) send(w http.ResponseWriter, r *http.Request, content string) {
	f.mu.Lock()
	if f.seen == nil {
		f.seen = map[string]int{}
	}
	f.seen[r.URL.Path]++
	first := f.seen[r.URL.Path] == 1
	f.mu.Unlock()
	if first && len(content) > 1000 {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write([]byte(content[:1000]))
		panic(http.ErrAbortHandler)
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
}
