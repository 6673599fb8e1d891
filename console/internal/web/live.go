// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/console/internal/pages"
)

// Times of a page that is live.
const (
	// settle is how long changes are collected before the page follows them.
	settle = 300 * time.Millisecond
	// refreshEvery is how often a page is made again although no watch reported anything: events and ages of backups are not watched.
	refreshEvery = 10 * time.Second
	// pollEvery is how often that is where a watch is not possible.
	pollEvery = 3 * time.Second
	// writeTimeout is how long a browser may take to read.
	writeTimeout = 10 * time.Second
)

var errBusy = &kube.Problem{Title: "Too many pages are live", Detail: "Close some, or load this page again later.", Status: http.StatusServiceUnavailable}

// streams that last at the same time.
type streams struct {
	mu   sync.Mutex
	most int
	// of each user.
	of    map[string]int
	total int
}

// take a place for a user, or refuse. One user has at most a fifth of them, so that no one takes them from all others.
func (s *streams) take(user string) (free func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= s.most || s.of[user] >= max(2, s.most/5) {
		return nil, errBusy
	}
	s.total++
	s.of[user]++

	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total--
		if s.of[user]--; s.of[user] == 0 {
			delete(s.of, user)
		}
	}, nil
}

func (s *Server) listLive(c *call) error {
	resources := make([]schema.GroupVersionResource, 0, len(kube.Kinds))
	for _, k := range kube.Kinds {
		resources = append(resources, k.GroupVersionResource)
	}

	return s.stream(c, "tables", resources, func(ctx context.Context) (any, error) { return s.tables(ctx, c) })
}

func (s *Server) objectLive(c *call) error {
	return s.stream(c, "detail", []schema.GroupVersionResource{c.kind.GroupVersionResource}, func(ctx context.Context) (any, error) {
		page, _, err := s.detail(ctx, c)

		return page, err
	})
}

// stream a part of a page whenever it differs, with the rights of its user, until the login ends.
func (s *Server) stream(c *call, part string, watched []schema.GroupVersionResource, look func(context.Context) (any, error)) error {
	free, err := s.streams.take(c.session.User)
	if err != nil {
		return err
	}
	defer free()
	ctx, cancel := context.WithDeadline(c.r.Context(), c.session.Expires)
	defer cancel()
	stop := context.AfterFunc(s.over, cancel)
	defer stop()

	changed := make(chan struct{}, 1)
	every := refreshEvery
	for _, r := range watched {
		if !c.follow(ctx, r, changed) {
			every = pollEvery
		}
	}
	out := newStream(c.w)
	timer, soon := time.NewTimer(0), true
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if c.r.Context().Err() == nil && s.over.Err() == nil {
				_ = out.send("ended", []byte("-"))
			}

			return nil
		case <-changed:
			// A page waits no longer because more changes follow.
			if !soon {
				timer.Reset(settle)
				soon = true
			}

			continue
		case <-timer.C:
			timer.Reset(every)
			soon = false
		}
		shown := part
		data, err := look(ctx)
		if ctx.Err() != nil {
			continue
		}
		if kube.Ended(err) {
			_ = out.send("ended", []byte("-"))

			return nil
		}
		if err != nil {
			data, shown = problemOf(err), "problem"
		}
		html, err := pages.Render(shown, data)
		if err != nil {
			s.Log.Error("cannot render", "part", shown, "error", err)

			return nil
		}
		if out.show(html) != nil {
			return nil // The browser is gone.
		}
	}
}

// A stream of events to a browser.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	last    []byte
	// timeout with a browser that reads nothing.
	timeout time.Duration
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	// The timeout of requests is not for one that lasts.
	_ = control.SetReadDeadline(time.Time{})

	return &stream{w: w, control: control, timeout: writeTimeout}
}

// show a part of the page when it differs from the last one. Else a line that browsers skip finds out whether this one is still there.
func (s *stream) show(html []byte) error {
	if bytes.Equal(html, s.last) {
		return s.write([]byte(":\n\n"))
	}
	s.last = html

	return s.send("part", html)
}

func (s *stream) send(event string, data []byte) error {
	var out bytes.Buffer
	out.WriteString("event: " + event + "\n")
	for line := range bytes.Lines(data) {
		out.WriteString("data: ")
		out.Write(bytes.TrimRight(line, "\r\n"))
		out.WriteByte('\n')
	}
	out.WriteByte('\n')

	return s.write(out.Bytes())
}

func (s *stream) write(data []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.timeout))
	// With HTTP/2 a deadline that passes between two writes would end the stream, too.
	defer func() { _ = s.control.SetWriteDeadline(time.Time{}) }()
	if _, err := s.w.Write(data); err != nil {
		return err //nolint:wrapcheck // The browser is gone: no page shows it.
	}

	return s.control.Flush() //nolint:wrapcheck // The same.
}

// follow changes of objects, and report whether the user may watch them. The API server ends each watch after some minutes, and another one
// follows it.
func (c *call) follow(ctx context.Context, r schema.GroupVersionResource, changed chan<- struct{}) bool {
	w, err := c.client.Watch(ctx, r, c.namespace, c.name)
	if err != nil {
		return false
	}
	go func() {
		for {
			if err == nil {
				note(ctx, w, changed)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pollEvery):
			}
			w, err = c.client.Watch(ctx, r, c.namespace, c.name)
		}
	}()

	return true
}

// note each change until a watch ends.
func note(ctx context.Context, w watch.Interface, changed chan<- struct{}) {
	stop := context.AfterFunc(ctx, w.Stop)
	defer stop()
	for range w.ResultChan() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}
