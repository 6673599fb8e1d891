// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/capstan-dev/capstan/console/internal/kube"
	"github.com/capstan-dev/capstan/console/internal/pages"
)

// Times of a page that is live.
const (
	// settle is how long changes are collected before the page follows them.
	settle = 300 * time.Millisecond
	// refresh is how often a page is made again although no watch reported anything: events and ages of backups are not watched.
	refresh = 10 * time.Second
	// poll is how often that is where a watch is not possible.
	poll = 3 * time.Second
	// write is how long a browser may take to read.
	write = 10 * time.Second
)

var busy = &kube.Problem{Title: "Too many pages are live", Detail: "Close some, or load this page again later.", Status: http.StatusServiceUnavailable}

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
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return busy
	}
	ctx, cancel := context.WithDeadline(c.r.Context(), c.session.Expires)
	defer cancel()
	stop := context.AfterFunc(s.over, cancel)
	defer stop()

	changed := make(chan struct{}, 1)
	every := refresh
	for _, r := range watched {
		if !c.follow(ctx, r, changed) {
			every = poll
		}
	}
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(c.w)
	// The timeout of requests is not for one that lasts.
	_ = control.SetReadDeadline(time.Time{})
	send := func(event string, data []byte) error {
		var out bytes.Buffer
		out.WriteString("event: " + event + "\n")
		for line := range bytes.Lines(data) {
			out.WriteString("data: ")
			out.Write(bytes.TrimRight(line, "\r\n"))
			out.WriteByte('\n')
		}
		out.WriteByte('\n')
		_ = control.SetWriteDeadline(time.Now().Add(write))
		if _, err := c.w.Write(out.Bytes()); err != nil {
			return err //nolint:wrapcheck // The browser is gone: nobody reads it.
		}

		return control.Flush()
	}
	var last []byte
	timer, soon := time.NewTimer(0), true
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			if c.r.Context().Err() == nil && s.over.Err() == nil {
				_ = send("ended", []byte("-"))
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
		data, err := look(ctx)
		if kube.Ended(err) {
			_ = send("ended", []byte("-"))

			return nil
		}
		var html []byte
		switch {
		case ctx.Err() != nil:
			continue
		case err != nil:
			html, err = pages.Render("problem", problemOf(err))
		default:
			html, err = pages.Render(part, data)
		}
		if err != nil {
			s.Log.Error("cannot render", "part", part, "error", err)

			return nil
		}
		if bytes.Equal(html, last) {
			// A line that browsers skip shows whether this one is still there.
			html = nil
		}
		if html == nil {
			_ = control.SetWriteDeadline(time.Now().Add(write))
			if _, err := c.w.Write([]byte(":\n\n")); err != nil {
				return nil //nolint:nilerr // The browser is gone.
			}
			if control.Flush() != nil {
				return nil
			}

			continue
		}
		last = html
		if send("part", html) != nil {
			return nil
		}
	}
}

// follow changes of objects. It is false where the user may not watch them.
func (c *call) follow(ctx context.Context, r schema.GroupVersionResource, changed chan<- struct{}) bool {
	w, err := c.client.Watch(ctx, r, c.namespace, c.name)
	if err != nil {
		return false
	}
	context.AfterFunc(ctx, w.Stop)
	go func() {
		for range w.ResultChan() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()

	return true
}
